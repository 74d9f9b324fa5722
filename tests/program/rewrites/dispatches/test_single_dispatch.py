"""Reductions to one number in a single dispatch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from folders import ROOT
from iree_cases import FLAGS
from rewriting import applies, compiled_to, library_for, run, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites.dispatches.single_dispatch import SingleDispatch

pytestmark = pytest.mark.promise

NORM = (ROOT / "benchmarks" / "models" / "norm.mlir").read_text()

SCALED = """
func.func @scaled(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %e = tensor.empty() : tensor<f32>
  %s = linalg.generic {indexing_maps = [affine_map<() -> ()>], iterator_types = []} outs(%e : tensor<f32>) {
  ^bb0(%o: f32):
    %n = arith.constant 60.0 : f32
    %one = arith.constant 1.0 : f32
    %r = arith.divf %one, %n : f32
    linalg.yield %r : f32
  } -> tensor<f32>
  %m = tensor.empty() : tensor<8x16xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %s : tensor<8x16xf32>, tensor<f32>) outs(%m : tensor<8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
"""
"""A program with a number that is computed of constants, as folding leaves some."""


def test_single_dispatch_computes_the_same(tmp_path: Path) -> None:
    model = write(tmp_path, NORM)
    flags = library_for(SingleDispatch(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"single_dispatch": 1}
    assert compiled_to(model, FLAGS, "flow").count("flow.executable private") == 2
    assert compiled_to(model, flags, "flow").count("flow.executable private") == 1
    values = np.random.default_rng(0).standard_normal((1, 256, 256), np.float32)
    np.testing.assert_allclose(run(compile_to_bytes(model, flags), [values], "norm"), [np.linalg.norm(values)], 1e-5)


@pytest.mark.parametrize(
    "text",
    [
        NORM.replace("256x256", "2048x1024"),
        NORM + "func.func @same(%x: tensor<1xf32>) -> tensor<1xf32> { return %x : tensor<1xf32> }",
        (ROOT / "benchmarks" / "models" / "softmax.mlir").read_text(),
        SCALED,
    ],
    ids=["large", "two functions", "no full reduction", "a number of constants"],
)
def test_a_program_that_gains_nothing_as_one_dispatch_is_left(text: str, tmp_path: Path) -> None:
    assert not applies(SingleDispatch(), write(tmp_path, text))
