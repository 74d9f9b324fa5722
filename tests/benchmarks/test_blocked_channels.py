"""Channels last against blocked channels: shapes of programs, numbers of layouts, totals, and one run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from channels_first_networks import network
from iree_cases import FLAGS
from rewriting import run

from benchmarks.figures.sampling import Samples, TimedWay
from benchmarks.operators.blocked_channels import command
from benchmarks.operators.blocked_channels.convolutions import Convolution, ProgramConvolutions, convolutions_of
from benchmarks.operators.blocked_channels.forms import BLOCKED, LAST, PACKED, block_of, forms_of, in_blocks
from benchmarks.operators.blocked_channels.measurement import Found, Tuned, trials_of
from benchmarks.operators.blocked_channels.tables import total_of
from mlir_sched.compiler import compile_to_bytes
from mlir_sched.targets.target import Target
from mlir_sched.tensors.element_types import Array

ONE, TWO = (1, 1), (2, 2)
STRIDED = Convolution(1, (9, 11), 20, 24, (3, 3), TWO, ONE, depthwise=False)
CONVOLUTIONS = [
    STRIDED,
    Convolution(2, (9, 9), 3, 16, (3, 3), ONE, TWO, depthwise=False),
    Convolution(1, (5, 4), 48, 64, ONE, ONE, ONE, depthwise=False),
    Convolution(1, (8, 8), 16, 36, ONE, TWO, ONE, depthwise=False),
    Convolution(1, (7, 9), 20, 20, (3, 3), (2, 1), ONE, depthwise=True),
]


def computed(convolution: Convolution, image: Array, taps: Array) -> Array:
    """Return the result with channels last, by NumPy."""
    one = convolution
    reach = [dilation * (size - 1) + 1 for size, dilation in zip(one.window, one.dilations, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(image, reach, axis=(1, 2))
    (down, along), (row, column) = one.strides, one.dilations
    windows = windows[:, ::down, ::along, :, ::row, ::column]
    result: Array = np.einsum("nhwcpq,pqc->nhwc" if one.depthwise else "nhwcpq,pqcf->nhwf", windows, taps)
    return result


def drawn(convolution: Convolution) -> tuple[Array, Array]:
    """Return an image and weights of small whole numbers, with channels last."""
    one, rng = convolution, np.random.default_rng(0)
    filters = [] if one.depthwise else [one.filters]
    shapes = (one.batch, *one.image, one.channels), (*one.window, one.channels, *filters)
    image, taps = (rng.integers(-3, 4, shape).astype(np.float32) for shape in shapes)
    return image, taps


@pytest.mark.promise
@pytest.mark.parametrize("convolution", CONVOLUTIONS, ids=lambda convolution: convolution.name)
def test_every_layout_computes_the_same_numbers(convolution: Convolution, tmp_path: Path) -> None:
    image, taps = drawn(convolution)
    expected = computed(convolution, image, taps)
    for name, form in forms_of(convolution, 16).items():
        (path := tmp_path / "program.mlir").write_text(form.text)
        result = form.result(run(compile_to_bytes(path, FLAGS), form.operands(image, taps)))
        np.testing.assert_array_equal(result, expected, err_msg=name)


def test_blocks_are_as_wide_as_needs_least_padding() -> None:
    wanted = {3: 3, 8: 8, 12: 16, 16: 16, 24: 8, 58: 16, 116: 8, 960: 16}
    assert {channels: block_of(channels, 16) for channels in wanted} == wanted
    assert [block_of(channels, 8) for channels in (3, 16, 58)] == [3, 8, 8]


def test_blocked_channels_lie_as_their_name_says() -> None:
    image, taps = drawn(STRIDED)
    blocked_image, blocked_taps = forms_of(STRIDED, 16)[BLOCKED].operands(image, taps)
    assert (blocked_image.shape, blocked_taps.shape) == ((1, 3, 9, 11, 8), (3, 3, 3, 3, 8, 8))
    assert blocked_image[0, 1, 4, 5, 6] == image[0, 4, 5, 14]
    assert blocked_taps[2, 1, 0, 2, 3, 4] == taps[0, 2, 11, 20]
    assert not blocked_image[:, 2, ..., 4:].any(), "channels beyond the last one"


def test_a_dim_is_filled_with_zeros_to_whole_blocks() -> None:
    assert in_blocks(np.ones((2, 5)), 1, 4).tolist() == [[[1, 1, 1, 1], [1, 0, 0, 0]]] * 2


def test_weights_are_packed_where_the_rewrite_of_that_name_packs_them() -> None:
    small_window = Convolution(1, (30, 30), 64, 64, (3, 3), ONE, ONE, depthwise=False)
    large_window = Convolution(1, (9, 9), 512, 512, (3, 3), ONE, ONE, depthwise=False)
    product, thin = (Convolution(1, (7, 7), 160, filters, ONE, ONE, ONE, depthwise=False) for filters in (96, 20))
    found = [PACKED in forms_of(one, 16) for one in (small_window, large_window, product, thin, CONVOLUTIONS[-1])]
    assert found == [False, True, True, False, False]


def test_channels_last_and_blocked_channels_have_equal_trials() -> None:
    for forms in ([LAST, BLOCKED], [LAST, PACKED, BLOCKED]):
        trials = trials_of(forms, 24)
        assert trials[BLOCKED] == sum(trials[name] for name in forms if name != BLOCKED)
        assert trials[LAST] == 24


def test_convolutions_that_differ_have_names_that_differ() -> None:
    names = {one.name for one in CONVOLUTIONS}
    assert "9x11x20, 3x3 to 24, stride 2" in names
    assert "7x9x20, depthwise 3x3, stride 2x1" in names
    assert len(names) == len(CONVOLUTIONS)


@pytest.mark.promise
def test_the_convolutions_of_a_program_are_counted_by_shape(here: Target, tmp_path: Path) -> None:
    (folder := tmp_path / "small").mkdir()
    (path := folder / "model.mlir").write_text(network())
    found = convolutions_of(path, here)
    first = Convolution(1, (20, 20), 4, 16, (3, 3), ONE, ONE, depthwise=False)
    separable = Convolution(1, (20, 20), 16, 16, (3, 3), ONE, ONE, depthwise=True)
    after, beside = (
        Convolution(1, image, 16, 32, ONE, strides, ONE, depthwise=False)
        for image, strides in (((8, 8), ONE), ((16, 16), TWO))
    )
    assert found == ProgramConvolutions("small", {first: 1, separable: 1, after: 1, beside: 1}, {})


@pytest.mark.promise
def test_equal_convolutions_are_one_and_those_of_other_kinds_are_named(here: Target, tmp_path: Path) -> None:
    (path := tmp_path / "grouped.mlir").write_text(GROUPED)
    found = convolutions_of(path, here)
    assert list(found.counts.values()) == [2]
    assert found.left_out == {"linalg.conv_2d_ngchw_gfchw": 1}


GROUPED = """
func.func @main(%x: tensor<1x8x6x6xf32>, %g: tensor<1x2x4x6x6xf32>, %a: tensor<8x8x1x1xf32>, %b: tensor<2x4x4x3x3xf32>,
    %c: tensor<1x8x6x6xf32>, %d: tensor<1x2x4x4x4xf32>) -> (tensor<1x8x6x6xf32>, tensor<1x2x4x4x4xf32>) {
  %0 = linalg.conv_2d_nchw_fchw ins(%x, %a : tensor<1x8x6x6xf32>, tensor<8x8x1x1xf32>)
    outs(%c : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
  %1 = linalg.conv_2d_nchw_fchw ins(%0, %a : tensor<1x8x6x6xf32>, tensor<8x8x1x1xf32>)
    outs(%c : tensor<1x8x6x6xf32>) -> tensor<1x8x6x6xf32>
  %2 = linalg.conv_2d_ngchw_gfchw ins(%g, %b : tensor<1x2x4x6x6xf32>, tensor<2x4x4x3x3xf32>)
    outs(%d : tensor<1x2x4x4x4xf32>) -> tensor<1x2x4x4x4xf32>
  return %1, %2 : tensor<1x8x6x6xf32>, tensor<1x2x4x4x4xf32>
}
"""


def sampled(*seconds: float) -> Tuned:
    return Tuned(Samples(TimedWay("iree", 0, ""), seconds, (True,) * len(seconds)), (), 0, 0)


def test_totals_count_each_convolution_as_often_as_it_occurs_in_its_faster_way_with_channels_last() -> None:
    rare = Found("rare", {LAST: sampled(*[5.0] * 6), BLOCKED: sampled(*[1.0] * 6)})
    often = Found("often", {LAST: sampled(*[9.0] * 6), PACKED: sampled(*[2.0] * 6), BLOCKED: sampled(*[4.0] * 6)})
    total = total_of([(rare, 1), (often, 3)])
    assert total.convolutions == 4
    assert (total.last_s.median, total.blocked_s.median) == (11.0, 13.0)
    assert total.over_last.median == pytest.approx(13 / 11)


def test_the_ratio_of_totals_is_that_of_each_round() -> None:
    slower = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]  # the machine becomes slower from round to round
    found = Found("one", {LAST: sampled(*slower), BLOCKED: sampled(*(2 * each for each in slower))})
    assert total_of([(found, 1)]).over_last.relative_width() == 0.0


@pytest.mark.promise
def test_a_run_measures_each_convolution_once_and_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "product.mlir").write_text(GROUPED)
    results = str(tmp_path / "results.json")
    options = [str(path), "--trials", "2", "--rounds", "6", "--json", results]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *options])
    assert command.main() == 0
    printed = capsys.readouterr().out
    monkeypatch.setattr(command, "measure", None)
    assert command.main() == 0
    again = capsys.readouterr().out
    assert "6x6x8, 1x1 to 8" in again
    assert again.splitlines() == printed.splitlines()[1:], "the first line names what is measured"
    assert "product: left out: 1 linalg.conv_2d_ngchw_gfchw" in again


def test_a_block_is_a_power_of_two(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "none.mlir", "--block", "12"])
    monkeypatch.setattr(command, "detect_target", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    assert "a block has a power of two of channels, at least 8" in capsys.readouterr().err
