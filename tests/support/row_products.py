"""Another distribution's rewrite, in one file: products as sums along rows, those of chosen shapes along columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlir_sched.program.rewrites import Rewrites
from mlir_sched.program.rewrites.linalg_ops import added, product_and_sum
from mlir_sched.program.rewrites.offered import RewriteFamily
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.site_kind import SiteKind
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class RowProducts(OpRewrite[OpSite]):
    by_columns: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.symbol}+{self.columns}" if self.by_columns else self.symbol

    @property
    def symbol(self) -> str:
        return "row_products"

    @property
    def columns(self) -> str:
        return f"column_products({','.join(self.by_columns)})"

    def sites(self, program: WalkedProgram) -> list[OpSite]:
        return [OpSite(op) for op in program.ops if op.name == "linalg.matmul"]

    def compute(self, site: OpSite, *inputs: Any) -> Any:
        left, right, init = inputs
        if shape_of(site.op) in self.by_columns:
            return added(init, product_and_sum(right, left, "kn", "mk", "nm"), (1, 0))
        return added(init, product_and_sum(left, right, "mk", "kn", "mn"), (0, 1))


@dataclass(frozen=True)
class Products(SiteKind):
    own, other = "rows", "columns"

    def site_name(self, shape: str) -> str:
        return f"product {shape}"

    def rewrite_name(self, shape: str) -> str:
        return RowProducts((shape,)).columns

    def has_choice(self, rewrites: Sequence[ProgramRewrite]) -> bool:
        return any(isinstance(rewrite, RowProducts) for rewrite in rewrites)

    def with_other(self, rewrites: tuple[ProgramRewrite, ...], shapes: tuple[str, ...]) -> tuple[ProgramRewrite, ...]:
        return tuple(replace(r, by_columns=shapes) if isinstance(r, RowProducts) else r for r in rewrites)

    def shapes(self, program: StagedProgram) -> list[str]:
        return [shape_of(site.op) for site, *_ in program.found(RowProducts()).values()]


class Family(RewriteFamily):
    def rewrites(self, device: str, cores: int) -> Sequence[Rewrites]:
        return [(RowProducts(),)] if device == "cpu" and cores else []

    def site_kinds(self, device: str) -> Sequence[SiteKind]:
        return [Products()] if device == "cpu" else []


def shape_of(op: Any) -> str:
    (rows, inner), (_, columns) = (operand.type.shape for operand in list(op.operands)[:2])
    return f"{rows}x{columns}x{inner}"
