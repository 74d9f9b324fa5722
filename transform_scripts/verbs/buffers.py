"""The verbs that decide in which memory and layout ops read their inputs."""

import math
from collections.abc import Mapping
from itertools import pairwise

from mlir_sched.payload import LinalgOp, Operand
from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.structures import Loop
from mlir_sched.transform_scripts.tracking.nest import Sharing, TiledOp, numbers_of, shared_tiles
from mlir_sched.transform_scripts.tracking.tracked_ops import Code
from mlir_sched.transform_scripts.verbs.state import ScheduleState


class BuffersMixin(ScheduleState):
    """Copies of what ops read."""

    def promote(
        self,
        op: LinalgOp,
        operand: Operand,
        *,
        innermost: Loop,
        tile: Mapping[Loop, int],
        around: int,
        around_rest: int = 0,
    ) -> None:
        """Copy an operand's tiles, transposed, into a buffer in front of the innermost loops around an op.

        The copy is vectorized with the op, by a match of every ``linalg.transpose`` and every ``tensor.pad`` of the
        function, so that the dispatch should have none of its own. After :meth:`peel` full tiles have a buffer, and
        what the innermost peeled loop leaves over has one of its own, or none.

        Args:
            operand: One of its inputs; every dimension is walked by one loop.
            innermost: The loop whose dimension and the last dimension change places in the buffer.
            tile: Elements that are copied at once, by loop; 1 along other loops.
            around: Number of innermost loops around the op that the copy is hoisted out of.
            around_rest: The same for what the innermost peeled loop leaves over; 0 reads the operand as it is there.
        """
        target = self._handles.found(op)
        if self._ops.code is Code.DISTRIBUTED:
            self._ops.clean_up()
        copies = len(self._loops.copies) + self._loops.pieces
        targets = self._emit.split(target, copies)  # full tiles, then what the innermost loop leaves over
        zeros = [_zero(each.tensor.element_type) for each in (*op.inputs, *op.outputs)]
        order = operand.swapped(operand.loops.index(innermost.position(op)), len(operand.loops) - 1)
        for copy, loops in zip(targets, [around, around_rest] if around_rest else [around], strict=False):
            held = self._emit.hoist_operand(copy, _index(op, operand), zeros, len(op.extents), loops, order)
            self._handles.hold(op, held)
        self._promoted.append(_along(operand, op, tile))

    def share(self, op: LinalgOp) -> None:
        """Copy the tiles of an op's inputs into memory that the threads of a workgroup share, in front of the op.

        The lowering distributes the copies over the threads of the workgroup, one vector of 16 bytes after the other.

        Args:
            op: The op; its tile is that of a workgroup, inside the loops that walk the reduction.
        """
        target, tiled = self._handles.found(op), self._ops[op]
        self._handles.hold(op, self._emit.share_operands(target, tuple(range(len(op.inputs)))))
        self.sharing = Sharing(shared_tiles(op, tiled.tile), _steps(tiled))

    def pack(
        self,
        op: LinalgOp,
        sizes: Mapping[Loop, int],
        *,
        operand: Operand,
        order: tuple[Loop, Loop],
        copy: Mapping[Loop, int],
    ) -> None:
        """Make groups of iterations of some loops innermost in memory: copy one operand, and view the others.

        The schedule goes on with the op's loops as they were, without loops over the iterations of a group. A match of
        every ``linalg.transpose`` of the function tiles the copy, so that the dispatch should have none of its own.

        Args:
            op: The op; the code of its tile is a ``linalg.generic`` from here on.
            sizes: Iterations of a group by loop.
            operand: The input that is copied; every dimension is walked by one loop.
            order: Two of the input's loops, in the order in which their dimensions stand in the copy.
            copy: Tile sizes of the copying op by loop; 1 along other loops.
        """
        packed = self._emit.pack(self._handles.found(op), numbers_of(op, sizes))
        dims = operand.ordered(*(loop.position(op) for loop in order))
        if list(dims) != sorted(dims):
            packed = self._emit.transpose_pack(packed, _index(op, operand), dims)
        self._emit.lower_packs()
        self._ops.clean_up()
        along = _along(operand, op, copy)
        tiled, _ = self._emit.tile_using_for(self._emit.match_ops(["linalg.transpose"]), [along[dim] for dim in dims])
        self._emit.vectorize(tiled)
        self._handles.rename(op, packed)

    def read_padding_in_place(self) -> None:
        """Read a padded tensor in place instead of a padded copy, each vector on the condition that it is not padding.

        A tile of 1 along the padded dimensions lies wholly inside the tensor or wholly outside. Most conditions fold,
        or hold for a whole row. Of the verbs on ops and loops only ``fold_unit_dims`` may follow.
        """
        self._ops.check_code()
        self._emit.apply_patterns(*patterns.MERGE_SLICES)
        self._emit.run_pass("iree-codegen-fuse-tensor-pad-with-consumer")
        self._ops.clean_up()
        self._emit.run_pass("iree-codegen-vectorize-tensor-pad")
        self._ops.close_code(Code.PADDING_READ)


def _index(op: LinalgOp, operand: Operand) -> int:
    """Return the index of an input; equal inputs may be different tensors."""
    return next(index for index, other in enumerate(op.inputs) if other is operand)


def _along(operand: Operand, op: LinalgOp, sizes: Mapping[Loop, int]) -> tuple[int, ...]:
    """Return the sizes of loops along the operand's dimensions; 1 for loops without a size."""
    by_position = {loop.position(op): size for loop, size in sizes.items()}
    return tuple(by_position.get(loop, 1) for loop in operand.loops)


def _zero(element_type: str) -> str:
    return f"{0 if element_type.startswith('i') else 0.0} : {element_type}"


def _steps(op: TiledOp) -> int:
    """Return the steps of the only loop around an op; 1 where there is none, or more than one."""
    trips = [
        math.prod(whole // size for whole, size in zip(outer.tile, inner.tile, strict=True))
        for outer, inner in pairwise(op.levels)
        if inner.kind == "loop"
    ]
    loops = [trip for trip in trips if trip > 1]
    return loops[0] if len(loops) == 1 else 1
