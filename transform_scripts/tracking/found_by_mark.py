"""Ops found again by marks, which are put in front of what ended their handles, and only if the op is used again."""

from mlir_sched.attributes import MARK
from mlir_sched.payload import LinalgOp
from mlir_sched.transform_scripts.emitter import Emitter, Handle, Place


class FoundByMark:
    """Ops whose handles ended, each with the place in the script where its handle was valid last.

    A mark is an attribute of its own for every look-up. What copies an op copies its mark: all copies are found.

    Args:
        emitter: Receives marks and look-ups.
    """

    def __init__(self, emitter: Emitter) -> None:
        self._emit = emitter
        self._last: dict[int, tuple[Place, Handle]] = {}
        self._marks = 0

    def __contains__(self, position: int) -> bool:
        """Say whether the handle at a position ended."""
        return position in self._last

    def end(self, position: int, place: Place, handle: Handle) -> None:
        """Note that a handle ends behind a place of the script, unless it ended before."""
        self._last.setdefault(position, (place, handle))

    def forget(self, position: int) -> None:
        """Note that there is a valid handle at a position."""
        self._last.pop(position, None)

    def find(self, position: int, op: LinalgOp) -> Handle:
        """Put a mark on an op where its handle was valid, and match the copies that carry it by now."""
        place, handle = self._last.pop(position)
        mark = f"{mark_of(op)}_{self._marks}"
        self._marks += 1
        self._emit.annotate(handle, mark, None, at=place)
        return self._emit.match_marked(mark)


def mark_of(op: LinalgOp) -> str:
    """Return the beginning of the marks of an op."""
    return f"{MARK}_{op.index}"
