"""The ops of a dispatch while a schedule is made: the loop nest of each, the state of the code, what cannot follow."""

from collections.abc import Iterable, Sequence
from enum import Enum, auto

from mlir_sched.errors import ScheduleError
from mlir_sched.payload import Dispatch, LinalgOp, producer_tiles
from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.emitter import Emitter
from mlir_sched.transform_scripts.tracking.nest import Level, TiledOp


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

    Args:
        emitter: Receives clean-ups.

    Attributes:
        nests: The finished ops, each with its final loop nest.
        unfinished: The ops, fills aside, that still have loops to be scheduled, in program order.
        code: The state of the code.
        rule: Where no op can be tiled or looked up any more, which verbs may follow; else empty.
    """

    def __init__(self, dispatch: Dispatch, emitter: Emitter) -> None:
        self.nests: list[TiledOp] = []
        self.unfinished = dispatch.beside_fills
        self.code = Code.DISTRIBUTED
        self.rule = ""
        self._dispatch = dispatch
        self._emit = emitter
        self._ops = [TiledOp(op, op.extents) for op in dispatch.ops]
        self._closed: dict[int, str] = {}  # ops that no verb can change, and why

    def __getitem__(self, op: LinalgOp) -> TiledOp:
        """Return an op as it stands."""
        return self._ops[op.index]

    def tile(self, index: int) -> tuple[int, ...]:
        """Return the current tile of the op at an index of the dispatch: iterations per loop."""
        return self._ops[index].tile

    # What may follow --------------------------------------------------------------------------------------------

    def check_code(self) -> None:
        """Refuse to look up ops and loops where padding is read in place or unit dimensions are folded.

        Raises:
            ScheduleError: The code is in such a state; the message says which verbs may follow.
        """
        if self.rule:
            raise ScheduleError(self.rule)

    def check(self, op: LinalgOp) -> None:
        """Refuse to change an op in a state in which no verb can.

        Raises:
            ScheduleError: The op is finished, inlined or not the one that ``copies`` yielded last.
        """
        self.check_code()
        if op.index in self._closed:
            raise ScheduleError(f"{op.name}, op {op.index} of the dispatch, {self._closed[op.index]}")

    def is_closed(self, index: int) -> bool:
        """Say whether no verb can change the op at an index of the dispatch."""
        return index in self._closed

    # The code ---------------------------------------------------------------------------------------------------

    def tidy(self) -> None:
        """Clean up untidy code."""
        if self.code is Code.UNTIDY:
            self.clean_up()

    def clean_up(self) -> None:
        """Canonicalize, so that shapes are static where they can be."""
        self._emit.apply_patterns(*patterns.CLEAN_UP)
        self._emit.cse()
        self.code = Code.TIDY

    def close_code(self, code: Code) -> None:
        """Note a state of the code in which no op can be tiled or looked up any more."""
        self.code, self.rule = code, _WHAT_FOLLOWS[code]

    # The nests --------------------------------------------------------------------------------------------------

    def tiled(self, op: LinalgOp, kind: str, sizes: Sequence[int]) -> None:
        """Note that an op is inside one more level; a size of 0, or above the tile, leaves a loop whole."""
        self._ops[op.index] = self._ops[op.index].tiled(kind, sizes)

    def fused(self, op: LinalgOp) -> None:
        """Note that an op is inside the loops of its last consumer, with the tiles that the consumer's tiles need."""
        consumers = self._dispatch.consumers(op.index)
        if not consumers:
            return
        consumer = self._ops[consumers[-1].index]
        tiles = producer_tiles(consumer.op, [level.tile for level in consumer.levels], op)
        levels = tuple(Level(level.kind, tile) for level, tile in zip(consumer.levels, tiles, strict=True))
        self._ops[op.index] = TiledOp(op, levels[-1].tile if levels else self.tile(op.index), levels)

    def finish(self, op: TiledOp) -> None:
        """Note that an op's loop nest is complete; of several copies, the last one's counts."""
        self.nests.append(op.tiled("vector", op.tile))
        self._close(op.op, _VECTORIZED)

    def remove(self, ops: Iterable[LinalgOp]) -> None:
        """Note that ops are not in the function any more."""
        for op in ops:
            self._close(op, _INLINED)

    def _close(self, op: LinalgOp, why: str) -> None:
        self._closed[op.index] = why
        self.unfinished = tuple(other for other in self.unfinished if other.index != op.index)

    # Copies -----------------------------------------------------------------------------------------------------

    def set_aside(self, indices: Iterable[int]) -> None:
        """Note that verbs act on one copy of an op at a time: on none of the ops at the indices until :meth:`show`."""
        for index in indices:
            self._closed.setdefault(index, _IN_COPIES)

    def show(self, copy: TiledOp) -> None:
        """Note that verbs act on a copy of an op from here on."""
        del self._closed[copy.op.index]
        self._ops[copy.op.index] = copy
        self.nests = [nest for nest in self.nests if nest.op is not copy.op]

    def hide(self, op: LinalgOp) -> None:
        """Note that verbs act on no copy of an op any more."""
        self._closed[op.index] = _IN_COPIES
