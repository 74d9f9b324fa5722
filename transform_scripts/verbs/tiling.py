"""The verbs that make loops and compute ops inside of them."""

from collections.abc import Mapping, Sequence

from mlir_sched.payload import LinalgOp
from mlir_sched.transform_scripts.structures import Loop
from mlir_sched.transform_scripts.tracking.nest import numbers_of
from mlir_sched.transform_scripts.tracking.tile_loops import TileLoop, made_loops
from mlir_sched.transform_scripts.tracking.tracked_ops import Code
from mlir_sched.transform_scripts.verbs.facts import FactsMixin

_REMATERIALIZE = "iree-codegen-rematerialize-parallel-ops"


class TilingMixin(FactsMixin):
    """Tiling and fusion."""

    def distribute(
        self, op: LinalgOp, sizes: Mapping[Loop, int], mapping: Sequence[str], *, over: str = "workgroup"
    ) -> TileLoop:
        """Tile an op into an ``scf.forall`` over workgroups, or over the threads of a workgroup.

        Before: ``op`` over (M, N).  After: ``forall (m, n) in (M/sm, N/sn): op`` over (sm, sn).

        Args:
            sizes: Sizes by loop; other loops stay whole.
            mapping: One mapping attribute per size, outermost first.
            over: ``workgroup`` or ``thread``.
        """
        target = self._handles.found(op)
        numbers = self._numbers_of(op, sizes)
        tiled, forall = self._emit.tile_using_forall(target, self._in_code(op, numbers), mapping)
        self._note_tiled(op, tiled, over, numbers)
        return TileLoop(forall)

    def tile(
        self,
        op: LinalgOp,
        sizes: Mapping[Loop, int],
        *,
        order: Sequence[Loop] | None = None,
        fuse: bool | Sequence[LinalgOp] = False,
    ) -> tuple[TileLoop, ...]:
        """Tile an op into ``scf.for`` loops.

        Args:
            sizes: Tile sizes by loop; other loops stay whole.
            order: The loops to tile, one after the other, outermost first; by default all at once, in the op's order.
            fuse: Whether to compute all producers of the op inside the innermost of these loops, or which ops. The code
                is then cleaned up, so that shapes are static where they can be, also where there is nothing to tile.

        Returns:
            The loops that were made, outermost first.
        """
        groups = [sizes] if order is None else [{loop: sizes[loop]} for loop in order]
        made: list[TileLoop] = []
        if fuse:
            self._handles.mark()
        for group in filter(None, groups):
            made += self._fuse_producers(op, group) if fuse is True else self._tile(op, group)
        self._loops.add(*made)
        if not isinstance(fuse, bool) and made:
            made[-1] = self.fuse(*fuse, into=made[-1])
        if fuse:
            self._handles.end(kept=op)
            self._ops.code = Code.UNTIDY
        return tuple(made)

    def fuse(self, *ops: LinalgOp, into: TileLoop) -> TileLoop:
        """Compute ops inside a loop of their consumer, the last op first; return the loop with its new handle."""
        self._check_loops(into)
        containing = into.handle
        for op in reversed(ops):
            if self._is_handed_on(op):
                self._emit.cse()  # its readers then read one slice; the op is fused once for each slice
            fused, containing = self._emit.fuse_into_containing_op(self._handles.found(op), containing)
            self._handles.hold(op, fused)
            self._ops.fused(op)
        return self._loops.hold(into, containing)

    def fuse_rest(self, op: LinalgOp, into: TileLoop) -> TileLoop:
        """Compute all other ops of the dispatch inside a loop of an op."""
        return self.fuse(*(other for other in self.dispatch.ops if other.index != op.index), into=into)

    def rfactor(self, op: LinalgOp, sizes: Mapping[Loop, int]) -> TileLoop:
        """Keep partial results of a reduction in lanes and combine them at the end.

        Before: ``for k: acc += a[k]``.  After: ``for k step s: acc[0:s] += a[k:k+s]``, then ``sum(acc[0:s])``.

        Args:
            sizes: Number of lanes by reduction loop; 1 for loops without lanes.
        """
        numbers, target = numbers_of(op, sizes), self._handles.found(op)
        in_code = self._in_code(op, numbers)
        partial, combine, handle = self._emit.tile_reduction_using_for(target, in_code, len(op.outputs))
        uneven = next((loop for loop, size in sizes.items() if self.extent(loop, op) % size), None)
        extent, size = (1, 1) if uneven is None else (self.extent(uneven, op), int(sizes[uneven]))
        self._handles.split(op, partial, combine)
        self._ops.tiled(op, "lanes", numbers)
        made = TileLoop(handle, uneven, extent, size)
        self._loops.add(made)
        return made

    def interchange(self, op: LinalgOp, first: Loop, second: Loop) -> None:
        """Let two loops of the code of an op, a ``linalg.generic``, change places.

        The schedule goes on with the op's loops as they were. Only tiles of one loop, peeling, :meth:`promote` and
        :meth:`vectorize` may follow for the op.
        """
        places = {first.position(op): second.position(op), second.position(op): first.position(op)}
        order = tuple(places.get(loop, loop) for loop in range(len(op.extents)))
        self._handles.hold(op, self._emit.interchange(self._handles.found(op), order))
        self._orders[op.index] = order

    def inline(self, *ops: LinalgOp) -> None:
        """Compute element-wise ops again in each of their readers, in place of keeping their results.

        Args:
            ops: The ops; these have to be all ops that the compiler's pass rematerialises.
        """
        if not ops:
            return
        self._ops.check_code()
        self._handles.mark()
        self._ops.tidy()
        self._handles.end()
        self._emit.run_pass(_REMATERIALIZE)
        self._ops.remove(ops)

    def _is_handed_on(self, op: LinalgOp) -> bool:
        """Say whether the dispatch stores the result of an op that several others read."""
        stored = op.index in self.dispatch.results and op is not self.dispatch.root
        return stored and len(self.dispatch.consumers(op.index)) > 1

    def _tile(self, op: LinalgOp, sizes: Mapping[Loop, int]) -> list[TileLoop]:
        target, extents = self._handles.found(op), self.tile_of(op)
        numbers = self._numbers_of(op, sizes)
        tiled, loops = self._emit.tile_using_for(target, self._in_code(op, numbers))
        self._note_tiled(op, tiled, "loop", numbers)
        return made_loops(loops, op, sizes, extents)

    def _fuse_producers(self, op: LinalgOp, sizes: Mapping[Loop, int]) -> list[TileLoop]:
        """Tile an op and fuse its producers greedily, which ends the producers' handles."""
        target, extents = self._handles.kept(op), self.tile_of(op)
        numbers = self._numbers_of(op, sizes)
        self._handles.end(kept=op)
        tiled, loops = self._emit.fuse(target, self._in_code(op, numbers))
        self._note_tiled(op, tiled, "loop", numbers)
        for other in reversed(self.dispatch.ops):
            if other.index != op.index:
                self._ops.fused(other)
        return made_loops(loops, op, sizes, extents)

    def _note_tiled(self, op: LinalgOp, handle: object, kind: str, numbers: Sequence[int]) -> None:
        self._handles.hold(op, handle)
        self._ops.tiled(op, kind, numbers)

    def _numbers_of(self, op: LinalgOp, sizes: Mapping[Loop, int]) -> list[int]:
        """Return one size per loop of an op that was found; none of them is a parameter where the op has copies."""
        numbers = numbers_of(op, sizes)
        return [*map(int, numbers)] if self._handles.is_copied(op) else numbers
