"""Padding behind reshapes: what is found, and what iree-compile makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from iree_cases import FLAGS
from rewriting import applies, compiled_to, library_for, run, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites.padding.reshaped import ReshapedPadding

pytestmark = pytest.mark.promise

GROUPED = """
func.func @main(%image: tensor<1x9x7x6xf32>, %taps: tensor<3x3x2x3x5xf32>) -> tensor<4x7x3x5xf32> {{
  %zero = arith.constant {padding} : f32
  %padded = tensor.pad %image low[0, {low}, 1, 0] high[0, {high}, 1, 0] {{
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %zero : f32
  }} : tensor<1x9x7x6xf32> to tensor<1x11x9x6xf32>
  %one = tensor.collapse_shape %padded [[0, 1], [2], [3]] : tensor<1x11x9x6xf32> into tensor<11x9x6xf32>
  %groups = tensor.expand_shape %one [[0], [1], [2, 3]] output_shape [11, 9, 3, 2]
      : tensor<11x9x6xf32> into tensor<11x9x3x2xf32>
  %start = arith.constant dense<0.0> : tensor<4x7x3x5xf32>
  %sums = linalg.generic {{indexing_maps = [
      affine_map<(h, w, g, f, i, j, c) -> (2 * h + i, w + j, g, c)>,
      affine_map<(h, w, g, f, i, j, c) -> (i, j, c, g, f)>,
      affine_map<(h, w, g, f, i, j, c) -> (h, w, g, f)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}}
      ins(%groups, %taps : tensor<11x9x3x2xf32>, tensor<3x3x2x3x5xf32>) outs(%start : tensor<4x7x3x5xf32>) {{
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %product = arith.mulf %x, %y : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }} -> tensor<4x7x3x5xf32>
  return %sums : tensor<4x7x3x5xf32>
}}
"""


def grouped(low: int = 1, high: int = 1, padding: str = "0.0") -> str:
    """Return a grouped convolution; rows of the image are padded by so much in front of and behind them."""
    return GROUPED.format(low=low, high=high, padding=padding)


def negated(padded: str, reshape: str, result: str, low: str = "0, 1, 0", high: str = "0, 1, 0") -> str:
    """Return a program that negates a padded tensor of 2x3x4 behind a reshape."""
    dims = ", ".join(f"d{i}" for i in range(result.count("x")))
    map_ = f"affine_map<({dims}) -> ({dims})>"
    kinds = ", ".join(['"parallel"'] * result.count("x"))
    return f"""
func.func @main(%source: tensor<2x3x4xf32>) -> tensor<{result}> {{
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %source low[{low}] high[{high}] {{
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %zero : f32
  }} : tensor<2x3x4xf32> to tensor<{padded}>
  %reshaped = {reshape} : tensor<{padded}> into tensor<{result}>
  %empty = tensor.empty() : tensor<{result}>
  %r = linalg.generic {{indexing_maps = [{map_}, {map_}], iterator_types = [{kinds}]}}
      ins(%reshaped : tensor<{result}>) outs(%empty : tensor<{result}>) {{
  ^bb0(%x: f32, %out: f32):
    %y = arith.negf %x : f32
    linalg.yield %y : f32
  }} -> tensor<{result}>
  return %r : tensor<{result}>
}}
"""


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 0), (0, 2)])
def test_a_grouped_convolution_of_padding_becomes_one_dispatch(low: int, high: int, tmp_path: Path) -> None:
    model, rewrite = write(tmp_path, grouped(low, high)), ReshapedPadding()
    flags = (*library_for(rewrite, model, tmp_path), *rewrite.flags)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"reshaped_padding": 1}
    assert compiled_to(model, flags, "flow").count("flow.dispatch @") == 1
    rng = np.random.default_rng(0)
    image = rng.standard_normal((1, 9, 7, 6)).astype(np.float32)
    taps = rng.standard_normal((3, 3, 2, 3, 5)).astype(np.float32)
    padded = np.pad(image[0].astype(np.float64), ((low, high), (1, 1), (0, 0))).reshape(11, 9, 3, 2)
    expected = np.zeros((4, 7, 3, 5))
    for i in range(3):
        for j in range(3):
            expected += np.einsum("hwgc,cgf->hwgf", padded[i : i + 7 : 2, j : j + 7], taps[i, j])
    np.testing.assert_allclose(run(compile_to_bytes(model, flags), [image, taps]), expected, rtol=1e-4, atol=1e-4)


RESHAPES = {
    "others are merged": negated(
        "2x3x9xf32", "tensor.collapse_shape %padded [[0, 1], [2]]", "6x9xf32", "0, 0, 2", "0, 0, 3"
    ),
    "others are split": negated(
        "2x5x4xf32", "tensor.expand_shape %padded [[0], [1], [2, 3]] output_shape [2, 5, 2, 2]", "2x5x2x2xf32"
    ),
    "it gets a dim of size 1": negated(
        "2x5x4xf32", "tensor.expand_shape %padded [[0], [1, 2], [3]] output_shape [2, 1, 5, 4]", "2x1x5x4xf32"
    ),
}


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", RESHAPES)
def test_rewritten_program_computes_the_same(name: str, tmp_path: Path) -> None:
    model = write(tmp_path, RESHAPES[name])
    flags = library_for(ReshapedPadding(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"reshaped_padding": 1}
    source = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    untuned = run(compile_to_bytes(model, FLAGS), [source])
    np.testing.assert_array_equal(run(compile_to_bytes(model, flags), [source]), untuned)


REFUSED = {
    "the padded dim is split": negated(
        "2x6x4xf32", "tensor.expand_shape %padded [[0], [1, 2], [3]] output_shape [2, 3, 2, 4]", "2x3x2x4xf32",
        high="0, 2, 0",
    ),
    "the padded dim is merged": negated("2x5x4xf32", "tensor.collapse_shape %padded [[0, 1], [2]]", "10x4xf32"),
    "it is padded with ones": grouped(padding="1.0"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name: str, tmp_path: Path) -> None:
    assert not applies(ReshapedPadding(), write(tmp_path, REFUSED[name]))
