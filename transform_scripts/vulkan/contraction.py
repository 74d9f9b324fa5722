"""Contractions on Vulkan devices: the tile of a thread is a register tile, and only the reduction is tiled further.

``threads`` keeps the accumulators of a thread in registers while it walks the whole reduction, and computes fill and
epilogues in the same tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from mlir_sched.transform_scripts.common import contraction as common
from mlir_sched.transform_scripts.common.contraction import (
    CONTRACT_PATTERNS,
    MAX_REDUCTION_STEP,
    Nest,
    Program,
    check_unrolled,
    tile_reduction,
)
from mlir_sched.transform_scripts.schedule import Schedule, product

MAX_UNROLLED_VECTORS = 256
"""Multiply-add vector instructions of one thread; with more, drivers take seconds to minutes to compile (lavapipe)."""


class Contraction(common.Contraction):
    """Accumulates in the registers of a thread."""

    backends: ClassVar[tuple[str, ...]] = ("vulkan-spirv",)

    def programs(self) -> Mapping[str, Program]:
        """Return the one program."""
        return {"threads": threads}


def threads(s: Schedule, nest: Nest) -> None:
    """Run the whole reduction in the tile of a thread.

    After: ``forall threads: { fill; for k step kr: contract; epilogues }``.
    """
    contraction, roles = s.ops[nest.contraction], nest.roles
    rows = product([contraction.tile[loop] for loop in contraction.op.parallel_dims if loop != roles.columns])
    (step,) = s.sample_perfect_tile(
        "reduction_step", contraction.tile[roles.reduction], 1, max_innermost=MAX_REDUCTION_STEP
    )
    check_unrolled(s, nest, rows, contraction.tile[roles.columns], step, MAX_UNROLLED_VECTORS)
    tile_reduction(s, nest, step)
    for op in s.ops:
        s.vectorize(op)
    s.emit.apply_patterns(*CONTRACT_PATTERNS)
