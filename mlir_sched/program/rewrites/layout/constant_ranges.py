"""The numbers 0, 1, 2 and so on, which PyTorch's exporter computes from loop indices, as constants.

IREE fuses what is computed from loop indices into the ops that read it. A gather that has its tensors of weights as
operands keeps a loop per row, column and channel; one that computes them has its last two loops made one, whose index
it divides into column and channel, and is not vectorized then (CollapseDimensions.cpp).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from iree.compiler import ir
from iree.compiler.dialects import arith

from mlir_sched.program.rewrites.layout.loop_indices import computes_range
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class ConstantRanges(OpRewrite[OpSite]):
    """Replaces the ops that count up by constants."""

    name = "constant_ranges"

    def sites(self, program: WalkedProgram) -> list[OpSite]:
        """Return the ops that count up along their only dim."""
        return [OpSite(op) for op in program.ops if computes_range(op)]

    def compute(self, site: OpSite, *inputs: Any) -> Any:
        """Return the constant."""
        del inputs
        kind = site.result.type
        numbers = np.arange(kind.shape[0], dtype=f"i{kind.element_type.width // 8}")
        return arith.constant(kind, ir.DenseElementsAttr.get(numbers, type=kind))
