"""Winograd's minimal filtering: what is found, and what iree-compile makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rewriting import applies, compiled_to, library_for, run, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites.convolution.winograd import ALGORITHMS, Winograd
from mlir_sched.program.rewrites.products.packed import PackedWeights

FIRST, HWCF = (0, 3, 1, 2), (3, 2, 0, 1)
"""Orders of dims: an image's from channels last to first, a filter's from ``hwcf`` to ``fchw``."""


def program(
    batch: int, height: int, width: int, channels: int, filters: int, *, first: bool = False, constant: bool = True
) -> str:
    """Return a 3x3 convolution that adds to its second argument; its filter is a constant or the third one.

    Args:
        batch, height, width, channels, filters: Sizes of the result and of the filter.
        first: Whether the layout is channels first.
        constant: Whether the filter is a constant.
    """
    values = weights(channels, filters)
    shapes = [(batch, height + 2, width + 2, channels), values.shape, (batch, height, width, filters)]
    if first:
        values = np.ascontiguousarray(values.transpose(HWCF))
        shapes = [tuple(shape[dim] for dim in order) for shape, order in zip(shapes, (FIRST, HWCF, FIRST), strict=True)]
    image, taps, result = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in shapes)
    given = f'  %taps = arith.constant dense<"0x{values.tobytes().hex()}"> : {taps}\n' if constant else ""
    ones = "dense<1> : tensor<2xi64>"
    return f"""
func.func @main(%image: {image}, %init: {result}{"" if constant else f", %taps: {taps}"}) -> {result} {{
{given}  %result = linalg.conv_2d_{"nchw_fchw" if first else "nhwc_hwcf"} {{dilations = {ones}, strides = {ones}}}
    ins(%image, %taps : {image}, {taps}) outs(%init : {result}) -> {result}
  return %result : {result}
}}
"""


def weights(channels: int, filters: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((3, 3, channels, filters)).astype(np.float32)


@pytest.mark.promise
@pytest.mark.sweep("landing")
@pytest.mark.parametrize(
    ("shape", "first"),
    [
        ((1, 16, 20, 32, 40), False),
        ((2, 12, 12, 32, 32), False),
        ((1, 10, 8, 33, 32), False),
        ((1, 16, 20, 32, 40), True),
    ],
)
def test_rewritten_program_computes_the_same(
    shape: tuple[int, int, int, int, int], first: bool, tmp_path: Path
) -> None:
    batch, height, width, channels, filters = shape
    model = write(tmp_path, program(*shape, first=first))
    flags = library_for(Winograd(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"winograd": 1}
    rng = np.random.default_rng(0)
    image = rng.standard_normal((batch, height + 2, width + 2, channels)).astype(np.float32)
    init = rng.standard_normal((batch, height, width, filters)).astype(np.float32)
    expected = init.astype(np.float64)
    for i in range(3):
        for j in range(3):
            expected += image[:, i : i + height, j : j + width] @ weights(channels, filters)[i, j]
    order = FIRST if first else range(4)
    inputs = [np.ascontiguousarray(value.transpose(order)) for value in (image, init)]
    found, expected = run(compile_to_bytes(model, flags), inputs), expected.transpose(order)
    assert np.abs(found - expected).max() < 2e-5 * np.abs(expected).max()


@pytest.mark.promise
def test_a_constant_filter_is_transformed_by_the_compiler(tmp_path: Path) -> None:
    model = write(tmp_path, program(1, 16, 16, 64, 64))
    text = compiled_to(model, (*library_for(Winograd(), model, tmp_path), *Winograd.flags), "flow")
    calls = [line for line in text.splitlines() if "flow.dispatch @" in line]
    assert len(calls) == 4  # two transforms of the image, the products, the transform of the result
    assert "tensor<36x64x64xf32>" in calls[2]


@pytest.mark.landing
def test_the_transformed_filter_of_many_columns_can_be_packed(tmp_path: Path) -> None:
    model = write(tmp_path, program(1, 16, 16, 64, 128))
    rewrite = Plan((Winograd(), PackedWeights()))
    flags = (*library_for(rewrite, model, tmp_path), *rewrite.flags)
    text = compiled_to(model, flags, "flow")
    calls = [line for line in text.splitlines() if "flow.dispatch @" in line]
    assert len(calls) == 4
    assert "tensor<36x4x64x32xf32>" in calls[2]
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in ((1, 18, 18, 64), (1, 16, 16, 128))]
    packed = run(compile_to_bytes(model, flags), inputs)
    plain = run(compile_to_bytes(model, library_for(Winograd(), model, tmp_path)), inputs)
    assert np.abs(packed - plain).max() < 1e-5 * np.abs(plain).max()


def test_matrices_are_those_of_minimal_filtering() -> None:
    rng = np.random.default_rng(0)
    for algorithm in ALGORITHMS:
        image, taps = rng.standard_normal(algorithm.points), rng.standard_normal(3)
        products = (np.array(algorithm.image) @ image) * (np.array(algorithm.filter) @ taps)
        expected = np.correlate(image, taps, "valid")
        np.testing.assert_allclose(np.array(algorithm.result) @ products, expected, rtol=1e-12)


@pytest.mark.promise
@pytest.mark.parametrize(("mutable", "taken"), [("", True), ("mutable ", False)])
def test_a_filter_may_be_a_global_that_is_never_written(mutable: str, taken: bool, tmp_path: Path) -> None:
    text = program(1, 16, 16, 32, 32, constant=False).replace(", %taps: tensor<3x3x32x32xf32>)", ")")
    load = "{\n  %taps = util.global.load @taps : tensor<3x3x32x32xf32>\n"
    text = f"util.global private {mutable}@taps = dense<1.0> : tensor<3x3x32x32xf32>\n" + text.replace("{\n", load, 1)
    assert applies(Winograd(), write(tmp_path, text)) == taken


REFUSED = {
    "few channels": program(1, 16, 16, 16, 64),
    "few tiles": program(1, 6, 6, 64, 64),
    "odd sizes": program(1, 15, 15, 64, 64),
    "filter as an argument": program(1, 16, 16, 32, 32, constant=False),
    "strided": program(1, 16, 16, 32, 32)
    .replace("strides = dense<1>", "strides = dense<2>")
    .replace("1x18x18", "1x33x33"),
}


@pytest.mark.promise
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_left_alone(name: str, tmp_path: Path) -> None:
    assert not applies(Winograd(), write(tmp_path, REFUSED[name]))
