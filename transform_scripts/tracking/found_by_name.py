"""Ops found again by their names, in program order."""

from collections.abc import Iterable, Sequence

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.transform_scripts.emitter import Emitter, Handle
from mlir_sched.transform_scripts.tracking.found_by_mark import mark_of


class FoundByName:
    """Ops whose handles ended, to be matched by name, all at once.

    Fusion puts the producers of an op into the order of its operands, so that only ops that read one another, each the
    op before it, are sure to stay in the dispatch's order. Other ops are marked before the first fusion (:meth:`mark`),
    and these marks take the place of names. Fills are never marked: CSE merges equal fills.

    Args:
        dispatch: The dispatch of the ops.
        emitter: Receives marks and look-ups.

    Attributes:
        ended: Whether the handles of the ops, fills aside, have ended.
        marked: Whether marks take the place of names.
    """

    def __init__(self, dispatch: Dispatch, emitter: Emitter) -> None:
        self.ended = False
        self.marked = False
        self._dispatch = dispatch
        self._emit = emitter
        self._all_fills = [op.index for op in dispatch.fills]
        self._fills: set[int] = set()  # those whose handles have ended

    def __contains__(self, index: int) -> bool:
        """Say whether the handle of the op at an index has ended."""
        return index in self._fills or (self.ended and any(op.index == index for op in self._dispatch.beside_fills))

    def end(self) -> None:
        """Note that the handles of all ops end."""
        self.ended = True
        self._fills = set(self._all_fills)

    def clear(self) -> None:
        """Note that ops whose handles have ended are not to be found any more."""
        self.ended = False
        self._fills.clear()

    def mark(self, handles: Iterable[tuple[LinalgOp, Handle]]) -> None:
        """Mark ops that fusion may put into another order, while their handles are valid."""
        for op, handle in handles:
            self._emit.annotate(handle, mark_of(op), None)
        self.marked = True

    def match_fills(self, fill: LinalgOp) -> Handle:
        """Match all fills of a name: they share one handle once their own have ended."""
        self._fills.discard(fill.index)
        return self._emit.match_ops([fill.name])

    def match(self, ops: Sequence[LinalgOp], copies: int = 1) -> list[tuple[Handle, ...]]:
        """Match ops that are there in several copies: per copy, in program order, the handles of the ops.

        Where several ops are matched at once, a script fails that finds more or fewer. A match of one op is not
        counted: that it is missing, or is several ops, shows in the proof of application and in the numeric checks.
        """
        self.ended = False
        found: dict[int, Sequence[Handle]] = {}
        for group in self._groups(ops):
            handles = self._emit.split(self._look_up(group), copies * len(group))
            found |= {op.index: handles[place :: len(group)] for place, op in enumerate(group)}
        return [tuple(found[op.index][copy] for op in ops) for copy in range(copies)]

    def _groups(self, ops: Sequence[LinalgOp]) -> list[list[LinalgOp]]:
        """Return the ops that are matched together: all of them, or all fills, and each marked op alone."""
        if not self.marked:
            return [list(ops)]
        fills = [op for op in ops if op.kind is OpKind.FILL]
        return [[op] for op in ops if op.kind is not OpKind.FILL] + ([fills] if fills else [])

    def _look_up(self, ops: Sequence[LinalgOp]) -> Handle:
        """Match all copies of ops, by the mark of a single marked op, else by their names."""
        if self.marked and ops[0].kind is not OpKind.FILL:
            return self._emit.match_marked(mark_of(ops[0]))
        return self._emit.match_ops(sorted({op.name for op in ops}))
