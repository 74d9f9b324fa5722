"""Products with packed weights: the same numbers, weights packed by the compiler, and products that are left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from channels_first_networks import network
from product_cases import Case, tensor_of
from rewriting import applies, assert_same_results, compiled_to, library_for, write

from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.products.packed import PackedWeights
from mlir_sched.program.rewrites.rewrite import ProgramRewrite

pytestmark = pytest.mark.promise

BOTH = Plan((ChannelsLast(), PackedWeights()))


POINTWISE = Case("conv_2d_nhwc_hwcf", (1, 5, 7, 24), (1, 1, 24, 96), (1, 5, 7, 96), order=(2, 3, 1, 0))
WINDOW = Case(
    "conv_2d_nhwc_hwcf",
    (1, 11, 9, 240),
    (3, 2, 240, 208),
    (1, 4, 8, 208),
    "{dilations = dense<[2, 1]> : tensor<2xi64>, strides = dense<[2, 1]> : tensor<2xi64>}",
)
MATMUL = Case("matmul", (9, 64), (64, 64), (9, 64), order=(1, 0))
TRANSPOSED = """indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>,
    affine_map<(d0, d1, d2) -> (d0, d1)>]"""
BATCH_TRANSPOSED = """indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>,
    affine_map<(b, m, n, k) -> (b, m, n)>]"""
CASES = {
    "pointwise": POINTWISE,
    "window": WINDOW,
    "line": Case("conv_1d_nwc_wcf", (2, 9, 128), (1, 128, 48), (2, 9, 48)),
    "one block": Case("conv_2d_nhwc_hwcf", (1, 4, 4, 80), (1, 1, 80, 32), (1, 4, 4, 32)),
    "no even blocks": Case("conv_2d_nhwc_hwcf", (1, 4, 4, 80), (1, 1, 80, 40), (1, 4, 4, 40)),
    "matmul": MATMUL,
    "weights read transposed": Case("matmul", (9, 64), (80, 64), (9, 80), TRANSPOSED),
    "batch of one": Case("batch_matmul", (1, 8, 48), (1, 48, 80), (1, 8, 80)),
    "weights of every batch": Case("batch_matmul", (3, 8, 48), (3, 48, 160), (3, 8, 160)),
    "weights of every batch read transposed": Case(
        "batch_matmul", (3, 8, 48), (3, 144, 48), (3, 8, 144), BATCH_TRANSPOSED
    ),
}
LEFT_ALONE = {
    "weights that are an argument": replace(POINTWISE, argument=True),
    "few rows": Case("matmul", (2, 64), (64, 64), (2, 64)),
    "few columns": Case("matmul", (64, 256), (256, 8), (64, 8)),
    "weights of the L1 cache": Case("matmul", (64, 32), (32, 32), (64, 32)),
    "filter of the L2 cache": Case("conv_2d_nhwc_hwcf", (1, 6, 6, 64), (3, 3, 64, 64), (1, 4, 4, 64)),
    "few columns of every batch": Case("batch_matmul", (3, 8, 48), (3, 48, 80), (3, 8, 80)),
    "few rows of every batch": Case("batch_matmul", (3, 4, 48), (3, 48, 160), (3, 4, 160)),
}


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", CASES)
def test_a_product_computes_the_same(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model = write(tmp_path, case.text())
    flags = library_for(PackedWeights(), model, tmp_path)
    assert_same_results(model, flags, case.inputs(), least=10)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"packed_weights": 1}


@pytest.mark.parametrize("case", [POINTWISE, MATMUL], ids=["pointwise", "matmul"])
def test_weights_are_packed_by_the_compiler(case: Case, tmp_path: Path) -> None:
    model = write(tmp_path, case.text())
    text = compiled_to(model, library_for(PackedWeights(), model, tmp_path), "flow")
    assert len([line for line in text.splitlines() if "flow.dispatch @" in line]) == 1
    *_, reduction, columns = case.weights
    assert tensor_of([columns // 32, reduction, 32]) in text


LINEAR = """%copies = tensor.empty() : tensor<6x64x96xf32>
  %same = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d1, d2)>,
      affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%weights : tensor<64x96xf32>) outs(%copies : tensor<6x64x96xf32>) {
  ^bb0(%w: f32, %o: f32):
    linalg.yield %w : f32
  } -> tensor<6x64x96xf32>
  %zero = arith.constant 0.0 : f32
  %start = linalg.fill ins(%zero : f32) outs(%init : tensor<6x8x96xf32>) -> tensor<6x8x96xf32>
  %product = linalg.batch_matmul ins(%rows, %same : tensor<6x8x64xf32>, tensor<6x64x96xf32>)
      outs(%start : tensor<6x8x96xf32>) -> tensor<6x8x96xf32>
  %result = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
      affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%product : tensor<6x8x96xf32>) outs(%init : tensor<6x8x96xf32>) {
  ^bb0(%x: f32, %o: f32):
    %positive = arith.maximumf %x, %zero : f32
    linalg.yield %positive : f32
  } -> tensor<6x8x96xf32>
  return %result : tensor<6x8x96xf32>
}
"""
"""A linear layer on a batch of rows as PyTorch exports it, with an activation."""


@pytest.mark.landing
def test_a_linear_layer_on_a_batch_of_rows_is_one_product_with_its_activation(tmp_path: Path) -> None:
    case = Case("matmul", (6, 8, 64), (64, 96), (6, 8, 96), order=(1, 0))
    model = write(tmp_path, case.text().partition("%result")[0] + LINEAR)
    flags = library_for(PackedWeights(), model, tmp_path)
    assert_same_results(model, flags, case.inputs(), least=50)
    text = compiled_to(model, flags, "flow")
    assert len([line for line in text.splitlines() if "flow.dispatch @" in line]) == 1
    assert tensor_of([3, 64, 32]) in text


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_left_alone(name: str, tmp_path: Path) -> None:
    assert not applies(PackedWeights(), write(tmp_path, LEFT_ALONE[name].text()))


def test_a_kind_with_any_weights_that_vary_is_left_alone(tmp_path: Path) -> None:
    text = MATMUL.text().replace("%init: ", "%others: tensor<64x64xf32>, %init: ")
    second = (
        "%second = linalg.matmul ins(%rows, %others : tensor<9x64xf32>, tensor<64x64xf32>) outs(%result : {0}) -> {0}"
    )
    text = text.replace("  return %result", f"  {second.format('tensor<9x64xf32>')}\n  return %second")
    assert not applies(PackedWeights(), write(tmp_path, text))


@pytest.mark.landing
def test_a_network_is_computed_channels_last_and_then_packed(tmp_path: Path) -> None:
    wide = network().replace("32x16x1x1", "128x16x1x1").replace("1x32x8x8", "1x128x8x8")
    wide = widened(wide)
    model = write(tmp_path, wide)
    flags = library_for(BOTH, model, tmp_path)
    image = np.random.default_rng(0).integers(-4, 5, (1, 4, 18, 18)).astype(np.float32)
    assert_same_results(model, flags, [image], least=100)
    marks = rewrites_in(compiled_to(model, flags, "preprocessing"))
    assert marks[BOTH.steps[-1].name] == 2
    dispatches = [line for line in compiled_to(model, flags, "flow").splitlines() if "flow.dispatch @" in line]
    assert sum("transpose" in line for line in dispatches) <= 2


def widened(text: str) -> str:
    """Return a program whose two 1x1 filters are made for 128 output channels."""
    lines = list[str]()
    for line in text.splitlines():
        if "tensor<128x16x1x1xf32>" in line and "arith.constant" in line:
            name = line.split("=")[0].strip()
            values = np.random.default_rng(len(lines)).integers(-2, 3, (128, 16, 1, 1)).astype(float).tolist()
            line = f"  {name} = arith.constant dense<{values}> : tensor<128x16x1x1xf32>"
        lines.append(line)
    return "\n".join(lines)


@pytest.mark.parametrize("rewrite", [BOTH, PackedWeights()], ids=lambda rewrite: rewrite.name)
def test_a_composition_applies_only_where_both_rewrites_do(rewrite: ProgramRewrite, tmp_path: Path) -> None:
    assert not applies(rewrite, write(tmp_path, network()))
