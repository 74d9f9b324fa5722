"""Convolutions whose filters are transposed up front: what is found, and what iree-compile makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from rewriting import applies, compiled_to, library_for, run, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites.convolution.contiguous_filters import LAYOUTS, ContiguousFilters

pytestmark = pytest.mark.promise


@dataclass(frozen=True)
class Case:
    """A convolution by its name without ``linalg.``; sizes of its dims by letter, and per spatial dimension."""

    name: str
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    taps: tuple[int, ...]
    results: tuple[int, ...]
    sizes: dict[str, int] = field(default_factory=lambda: {"n": 2, "g": 2, "c": 3, "f": 18})

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of image, filter and result."""
        layout = LAYOUTS[f"linalg.{self.name}"]
        steps = zip(self.results, self.strides, self.taps, self.dilations, strict=True)
        pixels = [(r - 1) * s + (t - 1) * d + 1 for r, s, t, d in steps]
        operands = [(layout.image, pixels), (layout.filter, self.taps), (layout.result, self.results)]
        return [self._shape(letters, spatial) for letters, spatial in operands]

    def text(self, constant: str = "") -> str:
        """Return the program; its filter is the last argument, or a constant."""
        image, taps, result = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in self.shapes())
        rank = len(self.taps)
        attributes = ", ".join(
            f"{name} = dense<[{', '.join(map(str, values))}]> : tensor<{rank}xi64>"
            for name, values in (("dilations", self.dilations), ("strides", self.strides))
        )
        return f"""
func.func @main(%image: {image}, %init: {result}{"" if constant else f", %taps: {taps}"}) -> {result} {{
  {f"%taps = arith.constant {constant} : {taps}" if constant else ""}
  %result = linalg.{self.name} {{{attributes}}} ins(%image, %taps : {image}, {taps}) outs(%init : {result}) -> {result}
  return %result : {result}
}}
"""

    def expected(self, image: np.ndarray, taps: np.ndarray, init: np.ndarray) -> np.ndarray:
        layout = LAYOUTS[f"linalg.{self.name}"]
        spatial = "xyz"[: len(self.taps)]
        letters = [_named(dims, spatial) for dims in (layout.image, layout.result)]
        of_tap = layout.filter.replace("s", "")
        result = init.astype(np.float64)
        for tap in product(*(range(size) for size in self.taps)):
            steps = zip(tap, self.dilations, self.strides, self.results, strict=True)
            windows = iter([slice(t * d, t * d + (r - 1) * s + 1, s) for t, d, s, r in steps])
            window = image[tuple(next(windows) if dim == "s" else slice(None) for dim in layout.image)]
            at = iter(tap)
            weights = taps[tuple(next(at) if dim == "s" else slice(None) for dim in layout.filter)]
            result += np.einsum(f"{letters[0]},{of_tap}->{letters[1]}", window, weights)
        return result

    def _shape(self, letters: str, spatial: Sequence[int]) -> tuple[int, ...]:
        rest = iter(spatial)
        return tuple(next(rest) if letter == "s" else self.sizes[letter] for letter in letters)


def _named(dims: str, spatial: str) -> str:
    rest = iter(spatial)
    return "".join(next(rest) if dim == "s" else dim for dim in dims)


CHANNELS = {"n": 2, "g": 18}
STRIDED = Case("conv_2d_nchw_fchw", (2, 2), (1, 1), (3, 3), (4, 5))
CASES = {
    "line": Case("conv_1d_ncw_fcw", (2,), (1,), (3,), (9,)),
    "plane": STRIDED,
    "dilated": Case("conv_2d_nchw_fchw", (1, 3), (2, 1), (2, 3), (4, 5)),
    "channels last": Case("conv_2d_nhwc_fhwc", (1, 1), (1, 1), (3, 2), (4, 5)),
    "groups": Case("conv_2d_ngchw_gfchw", (2, 1), (1, 1), (3, 3), (4, 5)),
    "groups inside": Case("conv_2d_ngchw_fgchw", (2, 2), (1, 1), (1, 3), (4, 5)),
    "groups, channels last": Case("conv_2d_nhwgc_gfhwc", (1, 1), (1, 1), (3, 3), (4, 5)),
    "space": Case("conv_3d_ncdhw_fcdhw", (2, 1, 2), (1, 1, 1), (2, 2, 3), (2, 3, 4)),
    "depthwise line": Case("depthwise_conv_1d_ncw_cw", (2,), (1,), (3,), (9,), CHANNELS),
    "depthwise": Case("depthwise_conv_2d_nchw_chw", (1, 2), (1, 2), (3, 2), (4, 5), CHANNELS),
    "depthwise space": Case("depthwise_conv_3d_ncdhw_cdhw", (1, 2, 2), (1, 1, 1), (2, 2, 3), (2, 3, 4), CHANNELS),
}


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", CASES)
def test_rewritten_program_computes_the_same(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model = write(tmp_path, case.text())
    flags = library_for(ContiguousFilters(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"contiguous_filters": 1}
    rng = np.random.default_rng(0)
    image, taps, init = (rng.standard_normal(shape).astype(np.float32) for shape in case.shapes())
    found = run(compile_to_bytes(model, flags), [image, init, taps])
    np.testing.assert_allclose(found, case.expected(image, taps, init), rtol=1e-4, atol=1e-4)


def test_a_filter_is_transposed_by_a_dispatch_of_its_own(tmp_path: Path) -> None:
    model = write(tmp_path, STRIDED.text())
    text = compiled_to(model, library_for(ContiguousFilters(), model, tmp_path), "flow")
    calls = [line for line in text.splitlines() if "flow.dispatch @" in line]
    assert ["transpose" in call for call in calls] == [True, False]
    assert "tensor<3x3x3x18xf32>" in calls[1]


def test_a_constant_filter_is_transposed_by_the_compiler(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal(STRIDED.shapes()[1]).astype(np.float32)
    model = write(tmp_path, STRIDED.text(f'dense<"0x{values.tobytes().hex()}">'))
    text = compiled_to(model, library_for(ContiguousFilters(), model, tmp_path), "flow")
    assert sum("flow.dispatch @" in line for line in text.splitlines()) == 1


REFUSED = {
    "few output channels": Case("conv_2d_nchw_fchw", (2, 2), (1, 1), (3, 3), (4, 5), {"n": 1, "g": 1, "c": 4, "f": 15}),
    "no window": Case("conv_2d_nchw_fchw", (2, 2), (1, 1), (1, 1), (4, 5)),
    "depthwise, few channels": Case("depthwise_conv_2d_nchw_chw", (2, 2), (1, 1), (3, 3), (4, 5), {"n": 1, "g": 15}),
    "depthwise, adjacent pixels": Case("depthwise_conv_2d_nchw_chw", (2, 1), (1, 1), (3, 3), (4, 5), CHANNELS),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_left_alone(name: str, tmp_path: Path) -> None:
    assert not applies(ContiguousFilters(), write(tmp_path, REFUSED[name].text()))


def test_only_floats_are_rewritten(tmp_path: Path) -> None:
    assert not applies(ContiguousFilters(), write(tmp_path, STRIDED.text().replace("f32", "f16")))
