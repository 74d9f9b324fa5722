"""Steps of a reduction that are copied into shared memory ahead of those that are computed, in IREE's pipelines.

Source: IREE 3.13, GPUPipelining as SPIRV/Passes.cpp runs it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mlir_sched.transform_scripts.schedule import Schedule

PADDING_BYTES = 16
"""Bytes behind each row of a shared tile. Source: ``bankConflictReductionPaddingBits`` (SPIRV/Passes.h)."""
MAX_DEPTH = 2
"""Most steps under way."""


@dataclass(frozen=True)
class StepsAhead:
    """How many steps are under way, and when a step is stored in shared memory.

    Attributes:
        depth: The number of steps; 0 where every step is copied when the step before is done.
        stage: 0 stores a step early, 1 late.
    """

    depth: int
    stage: int

    def __str__(self) -> str:
        """Return the choice as traces call it."""
        return f"{self.depth}, {'late' if self.stage else 'early'}" if self.depth else "0"

    @property
    def attributes(self) -> str:
        """What a ``translation_info`` says of it, in MLIR syntax."""
        return f"{{pipeline_depth = {self.depth} : i64, store_stage = {self.stage} : i64}}"


def sample_steps_ahead(s: Schedule, depths: Iterable[int], fits: Callable[[StepsAhead], bool], why: str) -> StepsAhead:
    """Draw how many steps are under way, of some numbers, and where there are any, when a step is stored."""
    drawn = (StepsAhead(depth, stage) for depth in depths for stage in range(2 if depth else 1))
    fitting = {str(ahead): ahead for ahead in drawn if fits(ahead)}
    s.require(bool(fitting), why)
    return fitting[s.sample_choice("pipeline", list(fitting))]
