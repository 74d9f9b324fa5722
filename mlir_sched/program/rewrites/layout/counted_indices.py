"""The numbers 0, 1, 2 and so on, which PyTorch's exporter computes from loop indices, and tables that are read at them.

IREE fuses what is computed from loop indices into the ops that read it. A gather that has its tensors of weights as
operands keeps a loop per row, column and channel; one that computes them has its last two loops made one, whose index
it divides into column and channel, and is not vectorized then (CollapseDimensions.cpp). Hence the numbers become
constants.

Models look up the embedding of every position by a gather at such numbers: the first rows of a table, one after the
other. IREE 3.13 fuses the gather into the op that reads the rows, whose dispatch then has no script. Hence the rows
become a slice of the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from iree.compiler import ir
from iree.compiler.dialects import arith, tensor

from mlir_sched.compiler.operations import walk
from mlir_sched.program.rewrites.layout.gather_rewrite import GatherRewrite
from mlir_sched.program.rewrites.layout.gather_site import CONSTANT_RANGES, GatherSite, computes_range
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite


@dataclass(frozen=True)
class ConstantRanges(OpRewrite[OpSite]):
    """Replaces the ops that count up by constants."""

    name = CONSTANT_RANGES

    def sites(self, program: ir.Module) -> list[OpSite]:
        """Return the ops that count up along their only dim."""
        return [OpSite(op) for op in walk(program.operation) if computes_range(op)]

    def compute(self, site: OpSite, *inputs: Any) -> Any:
        """Return the constant."""
        del inputs
        kind = site.result.type
        numbers = np.arange(kind.shape[0], dtype=f"i{kind.element_type.width // 8}")
        return arith.constant(kind, ir.DenseElementsAttr.get(numbers, type=kind))


@dataclass(frozen=True)
class RowsInOrder(GatherRewrite):
    """Replaces the rows that are read by a slice of the table."""

    name = "rows_in_order"

    def fitting(self, gathers: Sequence[GatherSite], program: ir.Module) -> list[GatherSite]:
        """Return the gathers whose results are the first rows of a table."""
        del program
        return [site for site in gathers if site.reads_in_order]

    def compute(self, site: GatherSite, *inputs: Any) -> Any:
        """Return the first rows of the table."""
        *_, table = inputs
        kind, rank = site.result.type, site.result.type.rank
        return tensor.extract_slice(kind, table, [], [], [], [0] * rank, list(kind.shape), [1] * rank)
