"""Facts of the code that a schedule program has made so far, and static rules that several modules share."""

import math
from collections.abc import Mapping, Sequence

from mlir_sched.errors import IllegalTraceError
from mlir_sched.payload import LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.extents import instructions, vector_elements
from mlir_sched.transform_scripts.structures import Loop, contiguous_loop
from mlir_sched.transform_scripts.tracking.nest import Level, TiledOp, points
from mlir_sched.transform_scripts.verbs.state import ScheduleState

ACCUMULATOR_SHARE = 0.75
"""Share of the vector registers for accumulators; above it LLVM spills (16x32 on 32 registers: 1.8x slower)."""
MAX_UNROLLED_VECTORS = 512
"""Most vector instructions in one unrolled tile; more only cost compile time and instruction cache."""
MAX_INSTRUCTIONS = 512
"""Most vector instructions in one straight-line tile; above it LLVM takes seconds per candidate and code leaves L1."""


def most_accumulators(target: Target) -> int:
    """Return the number of vector registers that may hold accumulators."""
    return int(target.vector_registers * ACCUMULATOR_SHARE)


class FactsMixin(ScheduleState):
    """The facts of a schedule, and the rules that refuse a trace."""

    @property
    def nests(self) -> list[TiledOp]:
        """The finished ops, each with its final loop nest."""
        return self._ops.nests

    # Facts ------------------------------------------------------------------------------------------------------

    def extent(self, loop: Loop, op: LinalgOp | None = None) -> int:
        """Return the number of iterations of a loop in the current tile.

        Args:
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

    @property
    def max_accumulators(self) -> int:
        """Number of vector registers that may hold accumulators."""
        return most_accumulators(self.target)

    def fits_stack(self, size: int) -> bool:
        """Say whether temporaries of a size in bytes fit the stack of a workgroup, if the target bounds it."""
        return not self.target.stack_bytes or size <= self.target.stack_bytes

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
        vectors = math.prod(math.ceil(n / lanes) if loop is along else int(n) for loop, n in sizes.items())
        self.require_accumulators(vectors, [*sizes.values()])
        self.require_unrolled(vectors * step, most_vectors)
        self.notes["unrolled_vectors"] = vectors * step

    def require_accumulators(self, registers: int, tile: Sequence[int]) -> None:
        """Refuse a tile whose accumulators take more registers than :attr:`max_accumulators`; note their number.

        Raises:
            IllegalTraceError: They take more; the message names the sizes of the tile.
        """
        most = self.max_accumulators
        if registers > most:
            raise IllegalTraceError(f"{'x'.join(map(str, tile))} accumulators take {registers} registers of {most}")
        self.notes["accumulator_registers"] = registers

    def require_unrolled(self, vectors: int, most: int = MAX_UNROLLED_VECTORS) -> None:
        """Refuse a tile that unrolls into too many vector instructions.

        Raises:
            IllegalTraceError: There are more than ``most``.
        """
        if vectors > most:
            raise IllegalTraceError(f"{vectors} unrolled vectors are more than {most}")

    def require_instructions(self, vectors: float, *ops: LinalgOp) -> None:
        """Refuse a tile whose straight-line code is too long.

        Raises:
            IllegalTraceError: There are more than :data:`MAX_INSTRUCTIONS`.
        """
        count = sum(instructions(op, vectors) for op in ops)
        if count > MAX_INSTRUCTIONS:
            raise IllegalTraceError(f"{count} vector instructions in a tile are more than {MAX_INSTRUCTIONS}")

    def require_stack(self, size: int, what: str = "temporaries") -> None:
        """Refuse values that do not fit the stack of one workgroup.

        Raises:
            IllegalTraceError: They are larger.
        """
        if not self.fits_stack(size):
            raise IllegalTraceError(f"{what} take {size} bytes of the {self.target.stack_bytes} on the stack")
