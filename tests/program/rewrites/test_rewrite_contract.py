"""Our own rewrites keep the contract that is published for rewrites of other packages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import row_products
from contraction_payloads import matmul

from mlir_sched.program.rewrites.dispatches.split_reduction import SplitReduction
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.testing import RewriteTests

pytestmark = pytest.mark.promise

SUM = """
func.func @main(%numbers: tensor<65536xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<f32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {
    indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["reduction"]
  } ins(%numbers : tensor<65536xf32>) outs(%init : tensor<f32>) {
  ^bb0(%number: f32, %partial: f32):
    %added = arith.addf %partial, %number : f32
    linalg.yield %added : f32
  } -> tensor<f32>
  return %sum : tensor<f32>
}
"""


class TestSplitReduction(RewriteTests):
    def make(self) -> ProgramRewrite:
        return SplitReduction(2)

    def programs(self) -> Mapping[str, str]:
        return {"sum": SUM}

    def others(self) -> Mapping[str, str]:
        return {"product": matmul(48, 64, 96).text}


class TestRowProducts(RewriteTests):
    """A rewrite of another package, which child processes import, too."""

    @pytest.fixture(autouse=True)
    def path(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYTHONPATH", str(Path(row_products.__file__).parent))

    def make(self) -> ProgramRewrite:
        return row_products.RowProducts()

    def programs(self) -> Mapping[str, str]:
        return {"product": matmul(48, 64, 96).text}

    def others(self) -> Mapping[str, str]:
        return {"sum": SUM}
