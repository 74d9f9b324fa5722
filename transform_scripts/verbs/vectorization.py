"""The verbs that make the final code of ops: vectors, or a function in the place of a tile."""

from collections.abc import Sequence

from mlir_sched.errors import ScheduleError
from mlir_sched.payload import LinalgOp, OpKind
from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.tracking.tracked_ops import Code
from mlir_sched.transform_scripts.verbs.draws import DIVIDE, MASK, PEEL
from mlir_sched.transform_scripts.verbs.facts import FactsMixin

_PARTS_OF_REDUCTIONS = ("linalg.fill", "linalg.generic", "linalg.reduce")
"""Names of the ops that a dispatch consists of once its reductions keep partial results."""


class VectorizationMixin(FactsMixin):
    """Final code."""

    def run_pass(self, name: str) -> None:
        """Run one of the compiler's passes on the function; ops are found again at their next use."""
        self._handles.mark()
        self._handles.end()
        self._emit.run_pass(name)

    def fold_unit_dims(self) -> None:
        """Drop unit dimensions from all ops of the function; afterwards these can only be vectorized, all together.

        Other verbs on ops and loops refuse to follow, and so does :meth:`vectorize` of some of the ops.
        """
        self._emit.run_pass("linalg-generalize-named-ops")  # a fill has unit dimensions to fold, too
        self._ops.clean_up()
        self._emit.apply_patterns(*patterns.FOLD_UNIT_DIMS)
        self._emit.cse()
        self._ops.close_code(Code.FOLDED)

    def vectorize(self, *ops: LinalgOp, tail: str = DIVIDE, then: Sequence[str] = ()) -> None:
        """Vectorize the tiles of ops, and the copies into the buffers that were made for the ops.

        Args:
            tail: Tail strategy: :data:`PEEL` first peels the iterations off that steps leave over, :data:`MASK` masks
                the vectors, :data:`DIVIDE` says that no iterations are left over.
            then: Pattern sets to apply at the end.

        Raises:
            IllegalTraceError: Fills of unlike tiles are to be masked; they are vectorized all at once.
            ScheduleError: Unit dimensions are folded, and these are not all ops, or tails are still to be peeled.
        """
        self._handles.settle()
        peels = tail == PEEL and bool(self._loops.uneven)
        if self._passes and self._ops.code is not Code.FOLDED:
            for handle in self._handles.take_combining():
                self._emit.vectorize(handle)
        if self._ops.code is Code.FOLDED:
            self._vectorize_folded(ops, peels=peels)
        elif peels or (self._promoted and self._loops.peeled):
            self._vectorize_peeled(ops)
        else:
            self._vectorize_tiles(ops, masked=tail == MASK)
        for op in ops:
            if op.kind is not OpKind.FILL:
                self._ops.finish(self._ops[op])
        if then:
            self._emit.apply_patterns(*then)

    def tensorize(self, op: LinalgOp, function: str) -> None:
        """Replace the code of an op's tile, the only ``linalg.generic`` that is left, by a function.

        Args:
            function: As in :meth:`~mlir_sched.transform_scripts.emitter.Emitter.replace_by_function`.
        """
        self._ops.check(op)
        self._ops.clean_up()
        self._emit.replace_by_function(self._emit.match_ops(["linalg.generic"]), function)
        self._ops.finish(self._ops[op])

    def _run_passes(self) -> None:
        """Run the passes that come before vectors, if they have not run yet."""
        for name in self._passes:
            self.run_pass(name)
        self._passes = ()

    def _vectorize_folded(self, ops: Sequence[LinalgOp], *, peels: bool) -> None:
        """Vectorize all ops of the function, whatever they have become."""
        if peels:
            raise ScheduleError(f"{self._ops.rule}; peel() has to come before")
        left = [op.name for op in self._ops.unfinished if op not in ops]
        if left:
            raise ScheduleError(f"{self._ops.rule}; {', '.join(left)} would be left")
        self._run_passes()
        self._emit.vectorize(self._emit.match_ops(["linalg.generic"]), gathers=any(op.gathers for op in ops))

    def _vectorize_peeled(self, ops: Sequence[LinalgOp]) -> None:
        """Peel, and vectorize full tiles and tails at once, by the names of the ops."""
        for op in ops:
            self._ops.check(op)
        self._peel()
        self._loops.peeled = []
        self._ops.clean_up()
        self._run_passes()
        names = _PARTS_OF_REDUCTIONS if self._handles.has_partial_results else sorted({op.name for op in ops})
        self._emit.vectorize(self._emit.match_ops(names), gathers=any(op.gathers for op in ops))
        self._vectorize_promoted()

    def _vectorize_tiles(self, ops: Sequence[LinalgOp], *, masked: bool) -> None:
        """Vectorize the tile of one op after the other, then the fills, then the copies into buffers."""
        self._ops.check_code()
        if masked:
            self._ops.clean_up()
        self._run_passes()
        for op in ops:
            if op.kind is not OpKind.FILL:
                parts = self._handles.parts(op)
                sizes = self._mask_sizes(op) if masked and len(parts) == 1 else ()
                for handle in parts:
                    self._emit.vectorize(handle, sizes, gathers=op.gathers)
        self._vectorize_fills([op for op in ops if op.kind is OpKind.FILL], masked=masked)
        self._vectorize_promoted()
        if masked:
            self._emit.apply_patterns(*patterns.MASKS)

    def _vectorize_fills(self, fills: Sequence[LinalgOp], *, masked: bool) -> None:
        """Vectorize all fills at once, wherever fusion put them."""
        if masked:
            tiles = sorted({self.tile_of(fill) for fill in fills})
            self.require(len(tiles) <= 1, f"fills of the tiles {tiles} cannot share their masks")
        for fill in fills[:1]:
            self._emit.vectorize(self._emit.match_ops([fill.name]), self.tile_of(fill) if masked else ())

    def _vectorize_promoted(self) -> None:
        """Vectorize the copies into buffers."""
        for tile in self._promoted:
            self._emit.vectorize(self._emit.match_ops(["linalg.transpose"]))
            self._emit.vectorize(self._emit.match_ops(["tensor.pad"]), tile)

    def _mask_sizes(self, op: LinalgOp) -> tuple[int, ...]:
        tile = tuple(self._in_code(op, self.tile_of(op)))
        return tuple(map(int, tile)) if self._handles.is_copied(op) else tile
