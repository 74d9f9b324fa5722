"""The verbs that put copies of a loop's body in place of the loop."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

from mlir_sched.errors import ScheduleError
from mlir_sched.payload import LinalgOp
from mlir_sched.transform_scripts.structures import Loop
from mlir_sched.transform_scripts.tracking.nest import TiledOp, numbers_of
from mlir_sched.transform_scripts.tracking.tile_loops import TileLoop
from mlir_sched.transform_scripts.tracking.tracked_ops import Code
from mlir_sched.transform_scripts.verbs.state import ScheduleState


class PeelingMixin(ScheduleState):
    """Peeling and unrolling."""

    def peel(self) -> None:
        """Peel the last iterations off every loop whose step does not divide its extent, inner loops first.

        The code is then cleaned up, as after a ``tile`` that fuses. From here on verbs act on all copies of an op
        at once, and ``extent`` and ``tile_of`` say what full tiles have; :meth:`copies` tells the copies apart.
        """
        self._ops.check_code()
        if self._loops.uneven:
            self._handles.settle()
            self._peel()
            self._ops.code = Code.UNTIDY

    def cut_rest(self, op: LinalgOp, loop: Loop, size: int, *, fuse: bool = False) -> None:
        """Peel, and tile what is left over of a loop once more, into pieces one after the other; full tiles stay.

        Before: ``op`` over 36.  After, with pieces of 16: ``op`` over 16, ``op`` over 16, ``op`` over 4.

        As after :meth:`peel` verbs act on all copies of an op at once, and the pieces are further ones.

        Args:
            op: An op inside all loops that :meth:`peel` peels.
            loop: The loop; its tile leaves over more than ``size`` of it.
            size: Iterations of a piece, at least 1; the last piece has the others.
            fuse: Whether each piece computes all producers of the op for itself.

        Raises:
            ScheduleError: No more than ``size`` iterations of the loop are left over, or what a loop leaves over was
                cut before.
        """
        self._check_uncut()
        self.peel()
        places = [place for place, made in enumerate(self._loops.peeled) if made.loop is loop]
        if not places:
            raise ScheduleError(f"no iterations of the loop {loop.name} are left over")
        copies, rest = self._loops.copies, self._loops.peeled[places[0]].rest
        if not 0 < size < rest:
            raise ScheduleError(
                f"{rest} iterations of the loop {loop.name} are left over, of which {size} are no piece"
            )
        left_over = [index for index, sizes in enumerate(copies) if sizes[places[0]] == rest]
        pieces, numbers = math.ceil(rest / size), self._in_code(op, numbers_of(op, {loop: size}))
        handles = self._emit.split(self._handles.found(op), len(copies))
        self._handles.multiply()
        for index in left_over:
            _, loops = (self._emit.fuse if fuse else self._emit.tile_using_for)(handles[index], numbers)
            self._emit.unroll(loops[0], pieces)
        self._loops.pieces = len(left_over) * (pieces - 1)
        self._ops.code = Code.UNTIDY

    def copies(self, *ops: LinalgOp) -> Iterator[LinalgOp]:
        """Peel, and yield ops once per copy of their tile that this makes, tails first; the full tiles come last.

        The ops have to be inside all loops that :meth:`peel` peels. Until the next op is yielded, the schedule's verbs
        act on the copy that was yielded, and refuse every other op. Afterwards only verbs that act on all code of the
        function may follow, as ``fold_unit_dims`` does.
        """
        self._ops.check_code()
        self._check_uncut()
        self._peel()
        self._ops.clean_up()
        sizes = self._loops.copies
        handles = self._handles.of_copies(ops, len(sizes))
        copies = [(self._copy(op, of_copy), op) for of_copy in sizes for op in ops]
        for (copy, op), handle in reversed(list(zip(copies, chain(*handles), strict=True))):
            self._handles.hold_copy(op, handle)
            self._ops.show(copy)
            yield op
            self._ops.hide(op)

    def unroll(self, *loops: TileLoop) -> None:
        """Unroll loops completely, the last loop first; from here on verbs act on all copies of an op at once."""
        if not loops:
            return
        self._check_loops(*loops)
        self._handles.settle()
        self._handles.multiply()
        for loop in reversed(loops):
            self._emit.unroll(loop.handle, loop.extent // loop.size)
        self._loops.drop(loops)

    def _copy(self, op: LinalgOp, sizes: Sequence[int]) -> TiledOp:
        """Return an op as it is in one copy of the tile: with the given sizes of the peeled loops."""
        whole = self._ops[op]
        tile = list(whole.tile)
        for made, size in zip(self._loops.peeled, sizes, strict=True):
            assert made.loop is not None
            position = made.loop.position(op)
            tile[position] = min(tile[position], size)
        return TiledOp(op, tuple(tile), whole.levels)

    def _check_uncut(self) -> None:
        """Refuse what counts the copies of ops once some of these were cut into pieces."""
        if self._loops.pieces:
            raise ScheduleError("what a loop leaves over is cut into pieces already")
