"""Another distribution's rewrite with a mistake: products of one shape are twice as large as they should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler.dialects import arith
from row_products import shape_of

from mlir_sched.program.rewrites import Rewrites
from mlir_sched.program.rewrites.linalg_ops import added, product_and_sum
from mlir_sched.program.rewrites.offered import RewriteFamily
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite
from mlir_sched.program.rewrites.walked_program import WalkedProgram

WRONG = "24x40x32"
"""Rows, columns and terms of the sums."""


@dataclass(frozen=True)
class WrongProducts(OpRewrite[OpSite]):
    name = "wrong_products"

    def sites(self, program: WalkedProgram) -> list[OpSite]:
        return [OpSite(op) for op in program.ops if op.name == "linalg.matmul"]

    def compute(self, site: OpSite, *inputs: Any) -> Any:
        left, right, init = inputs
        factor = arith.addf(left, left) if shape_of(site.op) == WRONG else left
        return added(init, product_and_sum(factor, right, "mk", "kn", "mn"), (0, 1))


class Family(RewriteFamily):
    def rewrites(self, device: str, cores: int) -> Sequence[Rewrites]:
        return [(WrongProducts(),)] if device == "cpu" and cores else []
