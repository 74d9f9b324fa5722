"""The transform handles of a dispatch's ops: which are valid, and how ops are found again whose handles ended."""

from collections.abc import Sequence

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.transform_scripts.emitter import Emitter, Handle
from mlir_sched.transform_scripts.tracking.found_by_mark import FoundByMark
from mlir_sched.transform_scripts.tracking.found_by_name import FoundByName
from mlir_sched.transform_scripts.tracking.tracked_ops import TrackedOps


class Handles:
    """The handles of the ops of a dispatch at this point of a schedule.

    An op whose handle ended is found again at its next use. As long as each op stands in the function once and under
    its own name, handles that end are found by name; as soon as a verb copies, splits or renames ops, handles that end
    from then on are found by marks.

    Args:
        ops: Its ops as they stand.
        emitter: Receives look-ups and marks.
    """

    def __init__(self, dispatch: Dispatch, ops: TrackedOps, emitter: Emitter) -> None:
        self._dispatch = dispatch
        self._ops = ops
        self._emit = emitter
        self._last: list[Handle] = [*emitter.match_linalg_ops(len(dispatch.ops))]  # per op, then per op in _combining
        self._combining: dict[int, int] = {}  # where in _last the op is that combines the partial results of an op
        self._by_name = FoundByName(dispatch, emitter)
        self._by_mark = FoundByMark(emitter)
        self._names_suffice = True  # to find ops again whose handles end
        self._kept: int | None = None  # the op among the ended ones whose handle is valid, but for the clean-up to come
        self._copied: set[int] = set()

    # Valid handles ----------------------------------------------------------------------------------------------

    def found(self, op: LinalgOp) -> Handle:
        """Return a valid handle of an op; all fills share one handle once their own have ended.

        Raises:
            ScheduleError: No verb can change the op any more.
        """
        self._ops.check(op)
        self.settle()
        if op.index in self._by_mark:
            self._find_mark(op.index, op)
        elif op.index in self._by_name:
            self.hold(op, self._by_name.match_fills(op))
        return self._last[op.index]

    def kept(self, op: LinalgOp) -> Handle:
        """Return a valid handle, as :meth:`found`; without a clean-up, if only fusing into the op ended any."""
        if op.index == self._kept:
            self._ops.check(op)
            return self._last[op.index]
        return self.found(op)

    def parts(self, op: LinalgOp) -> tuple[Handle, ...]:
        """Return valid handles of an op: one, or of an op with partial results that of these and of what combines."""
        handle, combining = self.found(op), self._combining.get(op.index)
        if combining is None:
            return (handle,)
        if combining in self._by_mark:
            self._find_mark(combining, op)
        return handle, self._last[combining]

    def take_combining(self) -> list[Handle]:
        """Return valid handles of the ops that combine partial results; they are no parts of ops any more."""
        taken = [self.parts(self._dispatch.ops[index])[1] for index in self._combining]
        self._combining.clear()
        return taken

    def settle(self) -> None:
        """Clean up untidy code, and match the ops whose handles ended by name; fills are matched at their next use."""
        self._ops.tidy()
        if self._by_name.ended and (ops := self._ops.unfinished) and not self._ops.rule:
            (handles,) = self._by_name.match(ops)
            for op, handle in zip(ops, handles, strict=True):
                self.hold(op, handle)

    def mark(self) -> None:
        """Prepare for a fusion, which may put ops that are found by name into another order."""
        unmarked = self._names_suffice and not self._by_name.marked
        if unmarked and not (self._dispatch.is_chain or self._ops.nests or self._ops.rule):
            self._by_name.mark((op, self.found(op)) for op in self._ops.unfinished)

    def _find_mark(self, position: int, op: LinalgOp) -> None:
        self._copied.add(position)
        self._last[position] = self._by_mark.find(position, op)

    # What becomes of handles ------------------------------------------------------------------------------------

    def hold(self, op: LinalgOp, handle: Handle) -> None:
        """Note a valid handle of an op."""
        self._last[op.index] = handle
        self._by_mark.forget(op.index)

    def rename(self, op: LinalgOp, handle: Handle) -> None:
        """Note a valid handle of an op whose code has another name."""
        self.hold(op, handle)
        self._names_suffice = False

    def split(self, op: LinalgOp, partial: Handle, combining: Handle) -> None:
        """Note valid handles of an op that keeps partial results, and of the op that combines these."""
        self.rename(op, partial)
        self._combining[op.index] = len(self._last)
        self._last.append(combining)

    def end(self, kept: LinalgOp | None = None) -> None:
        """Note that all handles end at this place of the script.

        Args:
            kept: The op that keeps its handle until the next clean-up.
        """
        self._kept = None if kept is None else kept.index
        if self._names_suffice:
            self._by_name.end()
            return
        place = self._emit.place()
        for position, handle in enumerate(self._last):
            if not self._ops.is_closed(position) and position not in self._by_name:
                self._by_mark.end(position, place, handle)

    def multiply(self) -> None:
        """Note that all handles end at this place of the script, because ops are copied."""
        self._names_suffice = False
        self.end()

    # Partial results and copies ---------------------------------------------------------------------------------

    @property
    def has_partial_results(self) -> bool:
        """Whether any op keeps partial results, taken or not what combines them."""
        return len(self._last) > len(self._dispatch.ops)

    def is_copied(self, op: LinalgOp) -> bool:
        """Say whether the handle of an op may stand for several copies, for which parameters are no sizes."""
        return op.index in self._copied

    def of_copies(self, ops: Sequence[LinalgOp], copies: int) -> list[tuple[Handle, ...]]:
        """Return, per copy of the tile around ops, in program order, the handles of the ops.

        The ops, and those whose handles ended, are set aside: a copy of an op is found once it is shown.
        """
        self._names_suffice = False
        ended = [op.index for op in self._dispatch.ops if op.index in self._by_name]
        handles = self._by_name.match(ops, copies)
        self._ops.set_aside([*ended, *(op.index for op in ops)])
        self._by_name.clear()
        return handles

    def hold_copy(self, op: LinalgOp, handle: Handle) -> None:
        """Note a valid handle of a single copy of an op."""
        self.hold(op, handle)
        self._copied.discard(op.index)
