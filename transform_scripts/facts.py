"""What a schedule program can ask while it runs: facts of the code that it has made so far, and static rules."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mlir_sched.errors import IllegalTraceError
from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.trace import Recorder
from mlir_sched.transform_scripts.draws import Draws
from mlir_sched.transform_scripts.emitter import Emitter
from mlir_sched.transform_scripts.extents import ACCUMULATOR_SHARE, vector_elements
from mlir_sched.transform_scripts.nest import Level, TiledOp, points
from mlir_sched.transform_scripts.structures import Loop, contiguous_loop
from mlir_sched.transform_scripts.tracked_ops import TrackedOps

MAX_UNROLLED_VECTORS = 512
"""Most vector instructions in one unrolled tile; more only cost compile time and instruction cache."""


class Facts(Draws):
    """The facts and rules of a schedule program, beside its draws.

    Args:
        dispatch: The payload.
        target: The target to compile for.
        recorder: Draws the decisions, or takes given ones.
        emitter: Receives the transform ops.
    """

    def __init__(self, dispatch: Dispatch, target: Target, recorder: Recorder, emitter: Emitter) -> None:
        super().__init__(recorder, emitter)
        self.dispatch = dispatch
        self.target = target
        self._ops = TrackedOps(dispatch, emitter)

    @property
    def nests(self) -> list[TiledOp]:
        """The finished ops, each with its final loop nest."""
        return self._ops.nests

    # Facts ------------------------------------------------------------------------------------------------------

    def extent(self, loop: Loop, op: LinalgOp | None = None) -> int:
        """Return the number of iterations of a loop in the current tile.

        Args:
            loop: The loop.
            op: The op whose tile is meant; by default the first op that the loop names.
        """
        if op is None:
            index, position = loop.at[0]
            return self._ops.tile(index)[position]
        return self._ops.tile(op.index)[loop.position(op)]

    def tile_of(self, op: LinalgOp) -> tuple[int, ...]:
        """Return the current tile of an op: iterations per loop."""
        return self._ops.tile(op.index)

    def points(self, op: LinalgOp) -> int:
        """Return how many results the current tile of an op has."""
        return points(op, self._ops.tile(op.index))

    def levels_of(self, op: LinalgOp) -> tuple[Level, ...]:
        """Return the tiling levels around an op, outermost first."""
        return self._ops[op].levels

    def lanes(self, op: LinalgOp) -> int:
        """Return how many elements of an op's result one vector register holds."""
        return vector_elements(op, self.target)

    # Rules ------------------------------------------------------------------------------------------------------

    def require(self, legal: bool, rule: str) -> None:
        """Refuse the trace unless a static rule holds.

        Raises:
            IllegalTraceError: The rule does not hold; ``rule`` is the message, which includes the values.
        """
        if not legal:
            raise IllegalTraceError(rule)

    def require_registers(
        self, op: LinalgOp, sizes: Mapping[Loop, int], *, step: int = 1, most_vectors: int = MAX_UNROLLED_VECTORS
    ) -> None:
        """Refuse tiles whose accumulators do not fit the registers, or that unroll into too many instructions.

        Args:
            op: The op that accumulates.
            sizes: Sizes of its accumulated tile by parallel loop; other loops count 1.
            step: Reduction iterations that are unrolled.
            most_vectors: Most vector instructions in one unrolled tile.

        Raises:
            IllegalTraceError: The tile is too large.
        """
        lanes, along = self.lanes(op), contiguous_loop(op, sizes)
        counts = [math.ceil(n / lanes) if loop is along else int(n) for loop, n in sizes.items()]
        vectors, most = math.prod(counts), int(self.target.vector_registers * ACCUMULATOR_SHARE)
        tile = "x".join(str(int(n)) for n in sizes.values())
        self.require(vectors <= most, f"{tile} accumulators take {vectors} registers of {most}")
        unrolled = vectors * step
        self.require(unrolled <= most_vectors, f"{unrolled} unrolled vectors are more than {most_vectors}")
        self.notes["accumulator_registers"] = vectors
        self.notes["unrolled_vectors"] = unrolled

    def _settle(self) -> None:
        self._ops.settle()
