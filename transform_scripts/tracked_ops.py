"""The ops of a dispatch while a schedule is made: the loop nest of each, handles that are valid, and tidy code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from itertools import product as combinations

from mlir_sched.attributes import MARK
from mlir_sched.errors import ScheduleError
from mlir_sched.payload import Dispatch, LinalgOp, OpKind, producer_tiles
from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.emitter import Emitter, Handle, Place
from mlir_sched.transform_scripts.nest import Level, TiledOp, TileLoop


class Code(Enum):
    """The state of the function's code."""

    DISTRIBUTED = auto()
    """Not cleaned up since distribution."""
    UNTIDY = auto()
    """To be cleaned up before the next look-up: fusion leaves shapes dynamic, and the originals of fused ops."""
    TIDY = auto()
    """Cleaned up."""
    PADDING_READ = auto()
    """With padded tensors read in place, on conditions that hold for the tiles as they are."""
    FOLDED = auto()
    """Without unit dimensions: ops have other loops than in the dispatch, so that none can be tiled any more."""


_WHAT_FOLLOWS = {
    Code.PADDING_READ: "after read_padding_in_place() only fold_unit_dims() may follow",
    Code.FOLDED: "after fold_unit_dims() ops can only be vectorized, all together",
}
_VECTORIZED = "has its final code; no verb can change it any more"
_INLINED = "is computed inside its readers; no verb can change it any more"
_IN_COPIES = "stands in the copies of copies(): schedule it as it is yielded, inside the loop over copies()"


class TrackedOps:
    """The ops of a dispatch as they stand at this point of a schedule.

    Handles that end are found again at the next use of their op: by name, in program order, as long as each op stands
    in the function once and under its own name; else by marks. Such a mark is put on the op in front of what ended the
    handle, and only if the op is used again.

    Args:
        dispatch: The dispatch.
        emitter: Receives look-ups and clean-ups.

    Attributes:
        nests: The finished ops, each with its final loop nest.
        code: The state of the code.
        rule: Where no op can be tiled or looked up any more, which verbs may follow; else empty.
    """

    def __init__(self, dispatch: Dispatch, emitter: Emitter) -> None:
        self.nests: list[TiledOp] = []
        self.code = Code.DISTRIBUTED
        self.rule = ""
        self._dispatch = dispatch
        self._emit = emitter
        handles = emitter.match_linalg_ops(len(dispatch.ops))
        self._ops = [TiledOp(h, op, op.extents) for h, op in zip(handles, dispatch.ops, strict=True)]
        self._named = [op.index for op in dispatch.ops if op.kind is not OpKind.FILL]
        self._combining: dict[int, int] = {}  # where in _ops the op is that combines the partial results of an op
        self._ended: set[int] = set()  # ops whose handles ended, to be found by name
        self._lost: dict[int, tuple[Place, Handle]] = {}  # the same, to be found by marks: the last valid handles
        self._kept: int | None = None  # the op among the ended ones whose handle is valid, but for the clean-up to come
        self._by_marks = False
        self._copied: set[int] = set()
        self._closed: dict[int, str] = {}  # ops that cannot be found, and why
        self._marks = 0
        self._marked = False

    def __getitem__(self, op: LinalgOp) -> TiledOp:
        """Return an op as it stands; its handle may have ended."""
        return self._ops[op.index]

    def tile(self, index: int) -> tuple[int, ...]:
        """Return the current tile of the op at an index of the dispatch: iterations per loop."""
        return self._ops[index].tile

    def found(self, op: LinalgOp) -> TiledOp:
        """Return an op as it stands, with a valid handle; all fills share one handle once their own have ended.

        Raises:
            ScheduleError: No verb can change the op any more.
        """
        self.check(op)
        self.settle()
        if op.index in self._lost:
            self.update(self[op].held(self._find_mark(op.index)))
        elif op.index in self._ended:
            self._ended.discard(op.index)
            self.update(self[op].held(self._emit.match_ops([op.name])))
        return self._ops[op.index]

    def kept(self, op: LinalgOp) -> TiledOp:
        """Return an op with a valid handle, as :meth:`found`; without a clean-up, if only fusing into it ended any."""
        if op.index == self._kept:
            self.check(op)
            return self._ops[op.index]
        return self.found(op)

    def parts(self, op: LinalgOp) -> tuple[Handle, ...]:
        """Return valid handles of an op: one, or of an op with partial results that of these and of what combines."""
        handle, combining = self.found(op).handle, self._combining.get(op.index)
        if combining is None:
            return (handle,)
        if combining in self._lost:
            self._ops[combining] = self._ops[combining].held(self._find_mark(combining))
        return handle, self._ops[combining].handle

    @property
    def has_partial_results(self) -> bool:
        """Whether any op keeps partial results."""
        return bool(self._combining)

    @property
    def unfinished(self) -> list[LinalgOp]:
        """The ops, fills aside, that still have loops to be scheduled."""
        return [self._dispatch.ops[index] for index in self._named]

    def is_copied(self, op: LinalgOp) -> bool:
        """Say whether the handle of an op may stand for several copies, for which parameters are no sizes."""
        return op.index in self._copied

    def close_code(self, code: Code) -> None:
        """Note a state of the code in which no op can be tiled or looked up any more."""
        self.code, self.rule = code, _WHAT_FOLLOWS[code]

    def check(self, op: LinalgOp) -> None:
        """Refuse to change an op in a state in which no verb can.

        Raises:
            ScheduleError: The op is finished, inlined or not the one that ``copies`` yielded last.
        """
        if self.rule:
            raise ScheduleError(self.rule)
        if op.index in self._closed:
            raise ScheduleError(f"{op.name}, op {op.index} of the dispatch, {self._closed[op.index]}")

    def check_code(self) -> None:
        """Refuse to look up ops and loops where padding is read in place or unit dimensions are folded.

        Raises:
            ScheduleError: The code is in such a state; the message says which verbs may follow.
        """
        if self.rule:
            raise ScheduleError(self.rule)

    def _find_mark(self, position: int) -> Handle:
        """Put a mark on an op where its handle was valid, and match the copies that carry it by now."""
        place, handle = self._lost.pop(position)
        mark = f"{_mark_of(self._ops[position].op)}_{self._marks}"
        self._marks += 1
        self._emit.annotate(handle, mark, None, at=place)
        self._copied.add(position)
        return self._emit.match_marked(mark)

    def settle(self) -> None:
        """Clean up untidy code, and match ops whose handles have ended again; fills are matched at their next use.

        Ops are matched by name, in program order, or by their marks (:meth:`mark`). Where several are matched at once,
        a script fails that finds more or fewer. A match of one op is not counted: that it is missing, or is several
        ops, shows in the proof of application and in the numeric checks.
        """
        if self.code is Code.UNTIDY:
            self.clean_up()
        if not self._ended or self._ended.isdisjoint(self._named) or self.rule:
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
        if self._marked or self._dispatch.is_chain or self.nests or self._by_marks or self.rule:
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
        """Note how an op stands now, with a valid handle."""
        self._ops[op.op.index] = op
        if self._lost:
            self._lost.pop(op.op.index, None)

    def rename(self, op: TiledOp) -> None:
        """Note how an op stands now, whose code has another name."""
        self.update(op)
        self._by_marks = True

    def split(self, op: TiledOp, combining: Handle) -> None:
        """Note how an op stands now that keeps partial results, and the op that combines these."""
        self.rename(op)
        self._combining[op.op.index] = len(self._ops)
        self._ops.append(op.held(combining))

    def fuse(self, op: LinalgOp, handle: Handle = None) -> None:
        """Note that an op is inside the loops of its last consumer, with the tiles that the consumer's tiles need."""
        consumers, tiled = self._dispatch.consumers(op.index), self._ops[op.index]
        if not consumers:
            self._ops[op.index] = tiled.held(handle)
            return
        consumer = self._ops[consumers[-1].index]
        tiles = producer_tiles(consumer.op, [level.tile for level in consumer.levels], op)
        levels = tuple(Level(level.kind, tile) for level, tile in zip(consumer.levels, tiles, strict=True))
        self._ops[op.index] = TiledOp(handle, op, levels[-1].tile if levels else tiled.tile, levels)

    def end_handles(self, kept: LinalgOp | None = None) -> None:
        """Note that all handles end at this place of the script.

        Args:
            kept: The op that keeps its handle until the next clean-up.
        """
        self._kept = None if kept is None else kept.index
        if not self._by_marks:
            self._ended = set(range(len(self._ops)))
            return
        place = self._emit.place()
        for position, op in enumerate(self._ops):
            if position not in self._ended and position not in self._closed:
                self._lost.setdefault(position, (place, op.handle))

    def multiply(self) -> None:
        """Note that all handles end at this place of the script, because ops are copied."""
        self._by_marks = True
        self.end_handles()

    def remove(self, ops: Sequence[LinalgOp]) -> None:
        """Note that ops are not in the function any more."""
        for op in ops:
            self._close(op, _INLINED)

    def _close(self, op: LinalgOp, why: str) -> None:
        self._closed[op.index] = why
        if op.index in self._named:
            self._named.remove(op.index)

    def copies(self, ops: Sequence[LinalgOp], peeled: Sequence[TileLoop]) -> Iterator[TiledOp]:
        """Yield ops once per copy of their tile that peeling loops made, the full tiles last; each stands as yielded.

        Until the next op is yielded, the copy that was yielded is the op; no other op can be found, then or afterwards.
        """
        self.clean_up()
        self._by_marks = True
        sizes = list(combinations(*((loop.size, loop.rest) for loop in peeled)))
        found = zip(sizes, self._match(ops, len(sizes)), strict=True)
        views = [
            self._cut(op, handle, peeled, each)
            for each, handles in found
            for op, handle in zip(ops, handles, strict=True)
        ]
        for index in self._ended | {op.index for op in ops}:
            self._closed.setdefault(index, _IN_COPIES)
        self._ended.clear()
        for view in reversed(views):
            self.update(view)
            self._copied.discard(view.op.index)
            del self._closed[view.op.index]
            self.nests = [nest for nest in self.nests if nest.op is not view.op]
            yield view
            self._closed[view.op.index] = _IN_COPIES

    def _cut(self, op: LinalgOp, handle: Handle, peeled: Sequence[TileLoop], sizes: Sequence[int]) -> TiledOp:
        """Return an op as it is in one copy of the tile."""
        tile = list(self[op].tile)
        for made, size in zip(peeled, sizes, strict=True):
            assert made.loop is not None
            position = made.loop.position(op)
            tile[position] = min(tile[position], size)
        return TiledOp(handle, op, tuple(tile), self[op].levels)

    def finish(self, op: TiledOp) -> None:
        """Note that an op's loop nest is complete; of several copies, the last one's counts."""
        self.nests.append(op.tiled(op.handle, "vector", op.tile))
        self._close(op.op, _VECTORIZED)


def _mark_of(op: LinalgOp) -> str:
    return f"{MARK}_{op.index}"
