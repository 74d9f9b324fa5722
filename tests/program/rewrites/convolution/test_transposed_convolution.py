"""Transposed convolutions: which ones are found, and what iree-compile makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from folders import ROOT
from iree.compiler import ir
from rewriting import abi, applies, compiled_to, library_for, run, write

from mlir_sched import TuneOptions, replay, tune
from mlir_sched.compiler import ModelCompileError, Shown, compile_showing, compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites.convolution.axis import Axis, Block
from mlir_sched.program.rewrites.convolution.input_dilation import find_sites
from mlir_sched.program.rewrites.convolution.transposed import TransposedConvolution
from mlir_sched.program.rewrites.walked_program import WalkedProgram
from mlir_sched.transform_scripts.script.form import script_context

NAMES = {1: "conv_1d_nwc_wcf", 2: "conv_2d_nhwc_hwcf", 3: "conv_3d_ndhwc_dhwcf"}


@dataclass(frozen=True)
class Case:
    """A transposed convolution: sizes per spatial dimension, and where the first pixel lies among the zeros."""

    pixels: tuple[int, ...]
    taps: tuple[int, ...]
    strides: tuple[int, ...]
    lows: tuple[int, ...]
    results: tuple[int, ...]
    mirrored: tuple[int, ...] = ()
    batch: int = 1
    channels: int = 5
    filters: int = 7

    @property
    def large(self) -> tuple[int, ...]:
        return tuple(r + t - 1 for r, t in zip(self.results, self.taps, strict=True))

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        image = (self.batch, *self.pixels, self.channels)
        return image, (*self.taps, self.channels, self.filters), (self.batch, *self.results, self.filters)

    def text(self, name: str = "main") -> str:
        """Return the program; it adds to its third argument."""
        rank = len(self.pixels)
        image, taps, result = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in self.shapes())
        large = f"tensor<{'x'.join(map(str, (self.batch, *self.large, self.channels)))}xf32>"
        ones = f"dense<1> : tensor<{rank}xi64>"
        return f"""
func.func @{name}(%image: {image}, %stored: {taps}, %init: {result}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {large}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {large}) -> {large}
  %spread = tensor.insert_slice %image into %zeros[0, {_list(self.lows)}, 0]
    [{_list(self.shapes()[0])}] [1, {_list(self.strides)}, 1] : {image} into {large}
  {self._mirroring(taps) if self.mirrored else ""}
  %result = linalg.{NAMES[rank]} {{dilations = {ones}, strides = {ones}}}
    ins(%spread, {"%mirrored" if self.mirrored else "%stored"} : {large}, {taps}) outs(%init : {result}) -> {result}
  return %result : {result}
}}
"""

    def expected(self, image: np.ndarray, stored: np.ndarray, init: np.ndarray) -> np.ndarray:
        large = np.zeros((self.batch, *self.large, self.channels))
        places = [
            slice(low, low + stride * size, stride)
            for low, stride, size in zip(self.lows, self.strides, self.pixels, strict=True)
        ]
        large[(slice(None), *places)] = image
        taps = np.flip(stored, self.mirrored)
        result = init.astype(np.float64)
        for tap in product(*(range(size) for size in self.taps)):
            window = tuple(slice(t, t + size) for t, size in zip(tap, self.results, strict=True))
            result += large[(slice(None), *window)] @ taps[tap]
        return result

    def _mirroring(self, kind: str) -> str:
        dims = range(len(self.taps) + 2)
        identity = ", ".join(f"d{d}" for d in dims)
        lasts = "\n".join(f"  %last{d} = arith.constant {self.taps[d] - 1} : index" for d in self.mirrored)
        indices = "\n".join(f"    %i{d} = linalg.index {d} : index" for d in dims)
        turned = "\n".join(f"    %j{d} = arith.subi %last{d}, %i{d} : index" for d in self.mirrored)
        place = ", ".join(f"%j{d}" if d in self.mirrored else f"%i{d}" for d in dims)
        loops = _list(['"parallel"'] * len(dims))
        return f"""{lasts}
  %other = tensor.empty() : {kind}
  %mirrored = linalg.generic {{indexing_maps = [affine_map<({identity}) -> ({identity})>], iterator_types = [{loops}]}}
    outs(%other : {kind}) {{
  ^bb0(%unused: f32):
{indices}
{turned}
    %value = tensor.extract %stored[{place}] : {kind}
    linalg.yield %value : f32
  }} -> {kind}"""


PLANE = Case((4, 4), (4, 4), (2, 2), (2, 2), (8, 8), mirrored=(0, 1))
CASES = {
    "plane": PLANE,
    "as stored": Case((3, 5), (3, 4), (2, 3), (1, 2), (7, 14)),
    "one dimension mirrored": Case((3, 4), (3, 3), (2, 2), (2, 2), (7, 9), mirrored=(1,)),
    "line": Case((6,), (5,), (3,), (2,), (17,), mirrored=(0,)),
    "space": Case((2, 3, 2), (2, 3, 2), (2, 1, 3), (1, 1, 0), (4, 3, 3), mirrored=(0, 1, 2)),
    "batch": Case((3, 4), (4, 3), (2, 2), (2, 1), (6, 7), mirrored=(0, 1), batch=3),
    "gaps": Case((3, 3), (2, 2), (3, 3), (1, 1), (9, 8), mirrored=(0, 1)),
    "zeros around": Case((3, 3), (2, 2), (2, 2), (4, 3), (11, 9), mirrored=(0, 1)),
    "one pixel": Case((1, 3), (4, 4), (2, 2), (1, 2), (2, 6), mirrored=(0, 1)),
}


LARGEST_SPLIT = {"plane": 2, "as stored": 2, "batch": 2, "line": 1}
"""Up to where there are products to leave out; 0 for the cases that are not here."""


@pytest.mark.promise
@pytest.mark.sweep("landing")
@pytest.mark.parametrize(
    ("name", "split"), [(name, split) for name in CASES for split in range(LARGEST_SPLIT.get(name, 0) + 1)]
)
def test_rewritten_program_computes_the_same(name: str, split: int, tmp_path: Path) -> None:
    case = CASES[name]
    model = write(tmp_path, case.text())
    rewrite = TransposedConvolution(split)
    flags = library_for(rewrite, model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {rewrite.name: 1}
    inputs = [np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in case.shapes()]
    found = run(compile_to_bytes(model, flags), inputs)
    np.testing.assert_allclose(found, case.expected(*inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.promise
def test_rewritten_program_neither_copies_the_filter_nor_multiplies_inserted_zeros(tmp_path: Path) -> None:
    model = write(tmp_path, PLANE.text())
    text = compiled_to(model, library_for(TransposedConvolution(), model, tmp_path), "flow")
    dispatches = [line for line in text.splitlines() if "flow.dispatch @" in line]
    assert len(dispatches) == 2
    assert "matmul" in dispatches[0]
    assert "linalg.conv" not in text


def test_products_beyond_the_edge_are_left_out() -> None:
    axis = Axis(pixels=4, taps=4, results=8, stride=2, crop=1, mirrored=False)
    assert axis.blocks() == [
        Block(range(0, 1), range(1, 4)),
        Block(range(1, 3), range(0, 4)),
        Block(range(3, 4), range(0, 3)),
    ]


def test_pixels_of_a_tap_are_those_with_a_result() -> None:
    for pixels, taps, results, stride, crop, mirrored in product((1, 4), (1, 3), (1, 5), (1, 3), (-2, 0, 2), (0, 1)):
        axis = Axis(pixels, taps, results, stride, crop, bool(mirrored))
        for tap in range(taps):
            kept = [i for i in range(pixels) if 0 <= stride * i + axis.shift(tap) - crop < results]
            assert list(axis.pixels_of(tap)) == kept


@pytest.mark.promise
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("strides = dense<1>", "strides = dense<2>"), "the convolution has a stride"),
        (("[1, 2, 2, 1] : ", "[1, 1, 1, 1] : "), "no zeros between the pixels"),
        (("constant 0.0", "constant 1.0"), "the pixels lie among ones"),
        (("f32", "f16"), "not tried"),
    ],
)
def test_others_are_not_found(change: tuple[str, str], why: str, tmp_path: Path) -> None:
    text = PLANE.text().replace(*change)
    if "strides = dense<2>" in change:
        text = text.replace("1x8x8x7", "1x4x4x7")
    assert not applies(TransposedConvolution(), write(tmp_path, text)), why


@pytest.mark.promise
def test_filter_from_an_unknown_op_is_taken_as_it_is(tmp_path: Path) -> None:
    text = PLANE.text().replace("arith.constant 3 : index", "arith.constant 2 : index", 1)
    assert applies(TransposedConvolution(), write(tmp_path, text))
    with script_context(), ir.Location.unknown():
        program = WalkedProgram(ir.Module.parse(abi(write(tmp_path, text))))
        (site,) = find_sites(program)
        assert site.mirroring is None


@pytest.mark.promise
def test_sites_that_differ_in_the_filter_alone_are_left(tmp_path: Path) -> None:
    other = Case((4, 4), (4, 4), (2, 2), (2, 2), (8, 8), mirrored=(1,))
    model = write(tmp_path, PLANE.text() + other.text("other"))
    assert not applies(TransposedConvolution(), model)


@pytest.mark.promise
def test_every_site_is_rewritten(tmp_path: Path) -> None:
    model = write(tmp_path, PLANE.text() + PLANE.text("other") + CASES["batch"].text("third"))
    rewrite = TransposedConvolution()
    text = compiled_to(model, library_for(rewrite, model, tmp_path), "preprocessing")
    assert rewrites_in(text) == {rewrite.name: 3}
    assert "linalg.conv" not in text


@pytest.mark.promise
@pytest.mark.parametrize(
    "change",
    [
        ("%last0 = arith.constant 3", "%last0 = arith.constant 2"),
        ("[0, 2, 2, 0]", "[0, 1, 2, 0]"),
        ("arith.constant 0.0", "arith.constant 1.0"),
        ("arith.subi %last0, %i0", "arith.subi %last0, %i1"),
    ],
)
def test_program_that_does_not_match_is_an_error(change: tuple[str, str], tmp_path: Path) -> None:
    flags = library_for(TransposedConvolution(), write(tmp_path, PLANE.text()), tmp_path)
    with pytest.raises(ModelCompileError):
        compile_to_bytes(write(tmp_path, PLANE.text().replace(*change)), flags)


@pytest.mark.promise
@pytest.mark.parametrize("name", CASES)
def test_split_without_products_to_leave_out_does_not_apply(name: str, tmp_path: Path) -> None:
    split = LARGEST_SPLIT.get(name, 0) + 1
    assert not applies(TransposedConvolution(split), write(tmp_path, CASES[name].text()))


@pytest.mark.landing
@pytest.mark.usefixtures("short_sessions")
def test_a_tuned_folder_rewrites_the_program_and_is_replayed(tmp_path: Path) -> None:
    """Four times fewer products are a gain that no noise hides."""
    text = (ROOT / "benchmarks" / "models" / "transposed_conv2d_zeros.mlir").read_text()
    model = write(tmp_path, text.replace("512", "64").replace("256", "64"))
    result = tune(model, tmp_path / "tuned", options=TuneOptions(trials=8, round_size=4, threads=1))
    assert result.program.variant.startswith("transposed_convolution")
    flags = (f"@{tmp_path / 'tuned' / 'flags.txt'}",)
    assert compile_showing(model, flags, shown=(Shown.REWRITES,)).rewrites == {result.program.variant: 1}
    replayed = replay(tmp_path / "tuned", model)
    assert replayed.program is not None
    assert [s.applied for s in replayed.sequences] == [d.weight for d in result.dispatches if d.symbol]


def _list(items: object) -> str:
    return ", ".join(map(str, items))  # type: ignore[call-overload]
