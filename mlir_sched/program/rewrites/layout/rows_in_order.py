"""Tables that are read from the first row on, one row after the other, as parts of the tables.

Models look up the embedding of every position that way: PyTorch's exporter writes a gather at the numbers 0, 1, 2 and
so on. IREE 3.13 fuses the gather into the op that reads the rows, whose dispatch then has no script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import tensor

from mlir_sched.program.rewrites.layout.gather_rewrite import GatherRewrite
from mlir_sched.program.rewrites.layout.gather_site import GatherSite


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
