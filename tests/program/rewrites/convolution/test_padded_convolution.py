"""Convolutions over padded images without the taps that meet only padding: which parts, the numbers, what is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from folders import ROOT
from rewriting import applies, compiled_to, library_for, run, write

from mlir_sched.compiler import ModelCompileError, compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites.convolution.padded import PaddedConvolution
from mlir_sched.program.rewrites.convolution.padded_axis import PaddedAxis, ResultRun

NAMES = {1: "conv_1d_nwc_wcf", 2: "conv_2d_nhwc_hwcf", 3: "conv_3d_ndhwc_dhwcf"}
REWRITE = PaddedConvolution()


@dataclass(frozen=True)
class Case:
    """A convolution over a padded image; it adds to its third argument, or to a number."""

    pixels: tuple[int, ...]
    taps: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    lows: tuple[int, ...]
    highs: tuple[int, ...]
    start: float | None = 0.0
    batch: int = 1
    channels: int = 3
    filters: int = 5

    @property
    def padded(self) -> tuple[int, ...]:
        return tuple(map(sum, zip(self.lows, self.pixels, self.highs, strict=True)))

    @property
    def results(self) -> tuple[int, ...]:
        along = zip(self.padded, self.taps, self.strides, self.dilations, strict=True)
        return tuple((size - (taps - 1) * dilation - 1) // stride + 1 for size, taps, stride, dilation in along)

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        image = (self.batch, *self.pixels, self.channels)
        return image, (*self.taps, self.channels, self.filters), (self.batch, *self.results, self.filters)

    def text(self, name: str = "main") -> str:
        image, taps, result = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in self.shapes())
        padded = f"tensor<{'x'.join(map(str, (self.batch, *self.padded, self.channels)))}xf32>"
        rank = len(self.taps)
        indices = ", ".join(f"%i{d}: index" for d in range(rank + 2))
        init = "%argument"
        made = ""
        if self.start is not None:
            init = "%init"
            made = f"""%start = arith.constant {self.start} : f32
  %empty = tensor.empty() : {result}
  %init = linalg.fill ins(%start : f32) outs(%empty : {result}) -> {result}"""
        return f"""
func.func @{name}(%image: {image}, %taps: {taps}, %argument: {result}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %image low[0, {_list(self.lows)}, 0] high[0, {_list(self.highs)}, 0] {{
  ^bb0({indices}):
    tensor.yield %zero : f32
  }} : {image} to {padded}
  {made}
  %result = linalg.{NAMES[rank]} {{dilations = dense<[{_list(self.dilations)}]> : tensor<{rank}xi64>,
    strides = dense<[{_list(self.strides)}]> : tensor<{rank}xi64>}}
    ins(%padded, %taps : {padded}, {taps}) outs({init} : {result}) -> {result}
  return %result : {result}
}}
"""

    def expected(self, image: np.ndarray, filter_: np.ndarray, argument: np.ndarray) -> np.ndarray:
        around = [(0, 0), *zip(self.lows, self.highs, strict=True), (0, 0)]
        padded = np.pad(image.astype(np.float64), around)
        result = np.full(argument.shape, self.start) if self.start is not None else argument.astype(np.float64)
        for tap in product(*(range(size) for size in self.taps)):
            firsts = [t * dilation for t, dilation in zip(tap, self.dilations, strict=True)]
            window = [
                slice(first, first + (size - 1) * stride + 1, stride)
                for first, size, stride in zip(firsts, self.results, self.strides, strict=True)
            ]
            result += padded[(slice(None), *window)] @ filter_[tap]
        return result


SPACE = Case((6, 5, 4), (7, 3, 3), (2, 2, 1), (1, 1, 1), (3, 1, 1), (3, 1, 1))
PLANE = Case((7, 6), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
CASES = {
    "space": (SPACE, 3),
    "plane": (PLANE, 3),
    "other dimensions are not padded": (replace(PLANE, lows=(1, 0), highs=(1, 0)), 3),
    "line with a stride and gaps between taps": (Case((23,), (4,), (2,), (3,), (5,), (2,)), 4),
    "one side": (Case((8, 5), (4, 2), (1, 1), (1, 1), (0, 1), (3, 0)), 4),
    "adds to an argument": (replace(PLANE, start=None), 3),
    "adds to a number": (replace(PLANE, start=1.5), 3),
    "some results meet only padding": (Case((4,), (3,), (2,), (1,), (6,), (7,), start=0.25), 5),
    "gaps larger than the image": (Case((5, 4), (3, 3), (1, 1), (6, 1), (6, 1), (6, 1)), 1),
    "runs that are joined have padding left": (Case((14,), (7,), (1,), (1,), (3,), (3,)), 3),
    "one result": (Case((1, 1), (3, 1), (1, 1), (1, 1), (1, 0), (1, 0)), 1),
    "split along the second dimension": (Case((1, 8), (1, 5), (1, 1), (1, 1), (0, 2), (0, 2)), 5),
}
"""Every case with the number of parts."""


@pytest.mark.promise
@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", CASES)
def test_parts_compute_the_same(name: str, tmp_path: Path) -> None:
    case, parts = CASES[name]
    model = write(tmp_path, case.text())
    flags = (*library_for(REWRITE, model, tmp_path), *REWRITE.flags)
    program = compiled_to(model, flags, "preprocessing")
    assert rewrites_in(program) == {"padded_convolution": 1}
    assert program.count("tensor.insert_slice") == (parts if parts > 1 else 0)
    inputs = [np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in case.shapes()]
    found = run(compile_to_bytes(model, flags), inputs)
    np.testing.assert_allclose(found, case.expected(*inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.promise
def test_parts_write_into_one_buffer(tmp_path: Path) -> None:
    model = ROOT / "benchmarks" / "models" / "conv3d.mlir"
    flags = (*library_for(REWRITE, model, tmp_path), *REWRITE.flags)
    lines = compiled_to(model, flags, "stream").splitlines()
    dispatches = [line for line in lines if "stream.cmd.dispatch @" in line]
    assert [f"x{taps}x7x7x3_f32" in line for taps, line in zip((4, 6, 7, 5), dispatches, strict=True)] == [True] * 4
    assert not [line for line in lines if "stream.cmd.copy" in line or "stream.cmd.fill" in line]


def test_runs_of_the_paper_s_convolution() -> None:
    axis = PaddedAxis(pixels=16, taps=7, results=8, stride=2, dilation=1, low=3)
    assert [len(axis.taps_of(result)) for result in range(8)] == [4, 6, 7, 7, 7, 7, 7, 5]
    assert axis.runs() == [
        ResultRun(range(0, 1), range(3, 7)),
        ResultRun(range(1, 2), range(1, 7)),
        ResultRun(range(2, 7), range(0, 7)),
        ResultRun(range(7, 8), range(0, 5)),
    ]
    assert axis.left_out() == pytest.approx(6 / 56)


def test_taps_of_a_result_are_those_that_meet_the_image() -> None:
    for pixels, taps, results, stride, dilation, low in product((1, 6), (1, 4), (9,), (1, 3), (1, 2), (0, 2, 9)):
        axis = PaddedAxis(pixels, taps, results, stride, dilation, low)
        for o in range(results):
            assert list(axis.taps_of(o)) == [t for t in range(taps) if 0 <= stride * o + dilation * t - low < pixels]


def test_runs_hold_every_result_once_with_all_its_taps() -> None:
    for pixels, taps, stride, dilation, low in product((3, 14, 40), (3, 7), (1, 2), (1, 3), (1, 3, 8)):
        axis = PaddedAxis(pixels, taps, pixels, stride, dilation, low)
        runs = axis.runs()
        assert [o for run in runs for o in run.results] == list(range(pixels))
        assert all(set(axis.taps_of(o)) <= set(run.taps) for run in runs for o in run.results)


def test_a_cut_that_saves_little_is_not_made() -> None:
    axis = PaddedAxis(pixels=14, taps=7, results=14, stride=1, dilation=1, low=3)
    assert [len(run.results) for run in axis.runs()] == [2, 10, 2]


@pytest.mark.promise
@pytest.mark.parametrize(
    ("case", "why"),
    [
        (replace(PLANE, pixels=(30, 6)), "2 of 90 products are too few"),
        (replace(PLANE, lows=(0, 1), highs=(0, 1)), "parts along the other dimension are not contiguous"),
        (replace(PLANE, batch=2), "parts of a batch are not contiguous"),
        (replace(PLANE, pixels=(9, 8), lows=(0, 0), highs=(0, 0)), "nothing is padded"),
    ],
)
def test_nothing_to_leave_out(case: Case, why: str, tmp_path: Path) -> None:
    assert not applies(REWRITE, write(tmp_path, case.text())), why


@pytest.mark.promise
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("%zero = arith.constant 0.0", "%zero = arith.constant 1.0"), "padded with ones"),
        (("f32", "f16"), "not tried"),
        (("1x7x6x3", "1x?x6x3"), "of unknown size"),
    ],
)
def test_others_are_not_found(change: tuple[str, str], why: str, tmp_path: Path) -> None:
    assert not applies(REWRITE, write(tmp_path, PLANE.text().replace(*change))), why


@pytest.mark.promise
def test_every_site_is_rewritten(tmp_path: Path) -> None:
    model = write(tmp_path, PLANE.text() + PLANE.text("again") + SPACE.text("other"))
    flags = (*library_for(REWRITE, model, tmp_path), *REWRITE.flags)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"padded_convolution": 3}


@pytest.mark.promise
@pytest.mark.parametrize(
    "other", [replace(PLANE, lows=(2, 1), highs=(0, 1)), replace(PLANE, start=None)], ids=["side", "what is added to"]
)
def test_sites_that_no_matcher_tells_apart_are_left(other: Case, tmp_path: Path) -> None:
    assert applies(REWRITE, write(tmp_path, other.text()))
    assert not applies(REWRITE, write(tmp_path, PLANE.text() + other.text("other")))


@pytest.mark.promise
@pytest.mark.parametrize(
    "change",
    [
        ("low[0, 1, 1, 0] high[0, 1, 1, 0]", "low[0, 2, 1, 0] high[0, 0, 1, 0]"),
        ("%zero = arith.constant 0.0", "%zero = arith.constant 1.0"),
        ("strides = dense<[1, 1]>", "strides = dense<1>"),
    ],
)
def test_a_program_that_does_not_match_is_an_error(change: tuple[str, str], tmp_path: Path) -> None:
    text = PLANE.text()
    assert change[0] in text
    flags = library_for(REWRITE, write(tmp_path, text), tmp_path)
    changed = text.replace(*change)
    if "strides" in change[0]:
        changed = changed.replace("3x3x3x5", "3x3x3x4").replace("7x6x5", "7x6x4")
    with pytest.raises(ModelCompileError):
        compile_to_bytes(write(tmp_path, changed), flags)


def _list(items: object) -> str:
    return ", ".join(map(str, items))  # type: ignore[call-overload]
