"""The ops of a dispatch while a schedule is made: the loop nest of each, handles that are valid, and tidy code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum, auto
from itertools import product as combinations

from mlir_sched.attributes import MARK
from mlir_sched.payload import Dispatch, LinalgOp, OpKind, producer_tiles
from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.emitter import Emitter, Handle
from mlir_sched.transform_scripts.nest import Level, TiledOp, TileLoop


class Code(Enum):
    """The state of the function's code."""

    DISTRIBUTED = auto()
    """Not cleaned up since distribution."""
    UNTIDY = auto()
    """To be cleaned up before the next look-up: fusion leaves shapes dynamic, and the originals of fused ops."""
    TIDY = auto()
    """Cleaned up."""
    FOLDED = auto()
    """Without unit dimensions: ops have other loops than in the dispatch, so that none can be tiled any more."""


class TrackedOps:
    """The ops of a dispatch as they stand at this point of a schedule.

    Args:
        dispatch: The dispatch.
        emitter: Receives look-ups and clean-ups.

    Attributes:
        nests: The finished ops, each with its final loop nest.
        code: The state of the code.
    """

    def __init__(self, dispatch: Dispatch, emitter: Emitter) -> None:
        self.nests: list[TiledOp] = []
        self.code = Code.DISTRIBUTED
        self._dispatch = dispatch
        self._emit = emitter
        handles = emitter.match_linalg_ops(len(dispatch.ops))
        self._ops = [TiledOp(h, op, op.extents) for h, op in zip(handles, dispatch.ops, strict=True)]
        self._named = [op.index for op in dispatch.ops if op.kind is not OpKind.FILL]
        self._ended: set[int] = set()
        self._marked = False

    def __getitem__(self, op: LinalgOp) -> TiledOp:
        """Return an op as it stands; its handle may have ended."""
        return self._ops[op.index]

    def tile(self, index: int) -> tuple[int, ...]:
        """Return the current tile of the op at an index of the dispatch: iterations per loop."""
        return self._ops[index].tile

    def found(self, op: LinalgOp) -> TiledOp:
        """Return an op as it stands, with a valid handle; all fills share one handle once their own have ended."""
        self.settle()
        if op.index in self._ended:
            self._ended.discard(op.index)
            self.update(self[op].held(self._emit.match_ops([op.name])))
        return self._ops[op.index]

    def settle(self) -> None:
        """Clean up untidy code, and match ops whose handles have ended again; fills are matched at their next use.

        Ops are matched by name, in program order, or by their marks (:meth:`mark`). Where several are matched at once,
        a script fails that finds more or fewer. A match of one op is not counted: that it is missing, or is several
        ops, shows in the proof of application and in the numeric checks.
        """
        if self.code is Code.UNTIDY:
            self.clean_up()
        if not self._ended or self._ended.isdisjoint(self._named):
            return
        self._ended.difference_update(self._named)
        ops = [self._ops[index] for index in self._named]
        (handles,) = self._match([op.op for op in ops], 1)
        for op, handle in zip(ops, handles, strict=True):
            self.update(op.held(handle))

    def mark(self) -> None:
        """Mark ops that fusion may put into another order, while their handles are valid; their marks find them again.

        Fusion puts the producers of an op into the order of its operands, so that only ops that read one another, each
        the op before it, are sure to stay in the dispatch's order. Fills are never marked: CSE merges equal fills.
        """
        if self._marked or self._dispatch.is_chain or self.nests:
            return
        for index in self._named:
            op = self._dispatch.ops[index]
            self._emit.annotate(self.found(op).handle, _mark_of(op), None)
        self._marked = True

    def _match(self, ops: Sequence[LinalgOp], copies: int) -> list[tuple[Handle, ...]]:
        """Match ops that are there in several copies: per copy, in program order, the handles of the ops."""
        groups = [list(ops)]
        if self._marked:
            fills = [op for op in ops if op.kind is OpKind.FILL]
            groups = [[op] for op in ops if op not in fills] + ([fills] if fills else [])
        found: dict[int, Sequence[Handle]] = {}
        for group in groups:
            handles = self._emit.split(self._look_up(group), copies * len(group))
            found |= {op.index: handles[place :: len(group)] for place, op in enumerate(group)}
        return [tuple(found[op.index][copy] for op in ops) for copy in range(copies)]

    def _look_up(self, ops: Sequence[LinalgOp]) -> Handle:
        """Match all copies of ops, by the mark of a single marked op, else by their names."""
        if self._marked and ops[0].kind is not OpKind.FILL:
            return self._emit.match_marked(_mark_of(ops[0]))
        return self._emit.match_ops(sorted({op.name for op in ops}))

    def tidy(self) -> None:
        """Clean up untidy code."""
        if self.code is Code.UNTIDY:
            self.clean_up()

    def clean_up(self) -> None:
        """Canonicalize, so that shapes are static where they can be."""
        self._emit.apply_patterns(*patterns.CLEAN_UP)
        self._emit.cse()
        self.code = Code.TIDY

    def update(self, op: TiledOp) -> None:
        """Note how an op stands now."""
        self._ops[op.op.index] = op

    def fuse(self, op: LinalgOp, handle: Handle = None) -> None:
        """Note that an op is inside the loops of its last consumer, with the tiles that the consumer's tiles need."""
        consumers, tiled = self._dispatch.consumers(op.index), self._ops[op.index]
        if not consumers:
            self.update(tiled.held(handle))
            return
        consumer = self._ops[consumers[-1].index]
        tiles = producer_tiles(consumer.op, [level.tile for level in consumer.levels], op)
        levels = tuple(Level(level.kind, tile) for level, tile in zip(consumer.levels, tiles, strict=True))
        self.update(TiledOp(handle, op, levels[-1].tile if levels else tiled.tile, levels))

    def end_handles(self) -> None:
        """Note that no handle of an op is valid any more."""
        self._ended = set(range(len(self._ops)))

    def remove(self, ops: Sequence[LinalgOp]) -> None:
        """Note that ops are not in the function any more."""
        gone = {op.index for op in ops}
        self._named = [index for index in self._named if index not in gone]

    def copies(self, ops: Sequence[LinalgOp], peeled: Sequence[TileLoop]) -> Iterator[TiledOp]:
        """Yield ops once per copy of their tile that peeling loops made, the full tiles last; each stands as yielded.

        Until the next op is yielded, the copy that was yielded is the op.
        """
        self.clean_up()
        self._ended.clear()
        sizes = list(combinations(*((loop.size, loop.rest) for loop in peeled)))
        found = zip(sizes, self._match(ops, len(sizes)), strict=True)
        views = [
            self._cut(op, handle, peeled, each)
            for each, handles in found
            for op, handle in zip(ops, handles, strict=True)
        ]
        for view in reversed(views):
            self.update(view)
            yield view

    def _cut(self, op: LinalgOp, handle: Handle, peeled: Sequence[TileLoop], sizes: Sequence[int]) -> TiledOp:
        """Return an op as it is in one copy of the tile."""
        tile = list(self[op].tile)
        for made, size in zip(peeled, sizes, strict=True):
            assert made.loop is not None
            position = made.loop.position(op)
            tile[position] = min(tile[position], size)
        return TiledOp(handle, op, tuple(tile), self[op].levels)

    def finish(self, op: TiledOp) -> None:
        """Note that an op's loop nest is complete."""
        self.nests.append(replace(op, levels=(*op.levels, Level("vector", op.tile))))


def _mark_of(op: LinalgOp) -> str:
    return f"{MARK}_{op.index}"
