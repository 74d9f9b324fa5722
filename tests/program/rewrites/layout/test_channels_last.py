"""Networks computed channels last: the same numbers, and hardly a transpose left."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from channels_first_networks import audio, function, layer, network, of_tokens, padded, residual_branches, weights
from iree_cases import FLAGS
from rewriting import applies, assert_same_results, compiled_to, library_for, run, write
from shuffled_channels import shuffled

from mlir_sched.compiler import ModelCompileError, compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites import pipeline
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast

pytestmark = pytest.mark.promise


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("channels_last"), network())


@pytest.fixture(scope="module")
def flags(model: Path) -> tuple[str, ...]:
    return library_for(ChannelsLast(), model, model.parent)


def test_a_network_computes_the_same(model: Path, flags: tuple[str, ...]) -> None:
    image = np.random.default_rng(0).integers(-4, 5, (1, 4, 18, 18)).astype(np.float32)
    assert_same_results(model, flags, [image], least=100)


def test_every_convolution_and_pooling_is_converted_and_counted(model: Path, flags: tuple[str, ...]) -> None:
    text = compiled_to(model, flags, "preprocessing")
    assert rewrites_in(text) == {"channels_last": 5}
    assert "nchw" not in text


def test_transposes_stay_at_the_ends_alone(model: Path, flags: tuple[str, ...]) -> None:
    dispatches = [line for line in compiled_to(model, flags, "flow").splitlines() if "flow.dispatch @" in line]
    assert sum("transpose" in line for line in dispatches) <= 2
    assert any("depthwise" in line or "conv" in line for line in dispatches)


def test_a_value_that_is_read_at_every_second_pixel_and_whole_stays_whole(tmp_path: Path) -> None:
    model = write(tmp_path, residual_branches())
    flags = library_for(ChannelsLast(), model, tmp_path)
    image = np.random.default_rng(0).integers(-4, 5, (1, 4, 16, 16)).astype(np.float32)
    assert_same_results(model, flags, [image], least=100)


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("column", [1, 0], ids=["rows in order", "a diagonal"])
def test_an_audio_network_is_computed_channels_last(column: int, tmp_path: Path) -> None:
    model = write(tmp_path, audio(column))
    flags = library_for(ChannelsLast(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing"))["channels_last"] == 3
    dispatches = [line for line in compiled_to(model, flags, "flow").splitlines() if "flow.dispatch @" in line]
    assert sum("transpose" in line for line in dispatches) <= 1, "that of the image"
    image = np.random.default_rng(0).integers(-4, 5, (1, 4, 16)).astype(np.float32)
    assert_same_results(model, flags, [image], least=100)


GATED = """
  %one = arith.constant 1.0 : f32
  %gate = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>,
      affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%out1 : tensor<1x16x18x18xf32>) outs(%empty1 : tensor<1x16x18x18xf32>) {
  ^bb0(%x: f32, %o: f32):
    %minus = arith.negf %x : f32
    %power = math.exp %minus : f32
    %more = arith.addf %power, %one : f32
    %part = arith.divf %one, %more : f32
    linalg.yield %part : f32
  } -> tensor<1x16x18x18xf32>
  %swish = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>,
      affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%gate, %out1 : tensor<1x16x18x18xf32>, tensor<1x16x18x18xf32>) outs(%empty1 : tensor<1x16x18x18xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %gated = arith.mulf %x, %y : f32
    linalg.yield %gated : f32
  } -> tensor<1x16x18x18xf32>
  %few = tensor.empty() : tensor<1x16x1x1xf32>
  %none = linalg.fill ins(%zero1 : f32) outs(%few : tensor<1x16x1x1xf32>) -> tensor<1x16x1x1xf32>
  %total = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>,
      affine_map<(d0, d1, d2, d3) -> (d0, d1, 0, 0)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%swish : tensor<1x16x18x18xf32>) outs(%none : tensor<1x16x1x1xf32>) {
  ^bb0(%x: f32, %sum: f32):
    %added = arith.addf %x, %sum : f32
    linalg.yield %added : f32
  } -> tensor<1x16x1x1xf32>
  %scaled = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>,
      affine_map<(d0, d1, d2, d3) -> (d0, d1, 0, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%swish, %total : tensor<1x16x18x18xf32>, tensor<1x16x1x1xf32>) outs(%empty1 : tensor<1x16x18x18xf32>) {
  ^bb0(%x: f32, %scale: f32, %o: f32):
    %product = arith.mulf %x, %scale : f32
    linalg.yield %product : f32
  } -> tensor<1x16x18x18xf32>"""
"""A swish, which reads its argument twice, and its result times the sum of its pixels, per channel."""


def gated() -> str:
    layers = [
        layer(0, "conv_2d_nchw_fchw", "%image", ("1x4x22x22", "16x4x3x3", "1x16x20x20"), 1),
        layer(1, "depthwise_conv_2d_nchw_chw", "%out0", ("1x16x20x20", "16x3x3", "1x16x18x18"), 1) + GATED,
        layer(2, "conv_2d_nchw_fchw", "%scaled", ("1x16x18x18", "8x16x1x1", "1x8x18x18"), 1),
    ]
    return function("1x4x22x22", "".join(layers), "%out2", "1x8x18x18")


@pytest.mark.landing
def test_transposes_move_through_an_activation_that_reads_its_argument_twice(tmp_path: Path) -> None:
    model = write(tmp_path, gated())
    flags = library_for(ChannelsLast(), model, tmp_path)
    results = [
        line.rpartition("->")[2] for line in compiled_to(model, flags, "flow").splitlines() if "flow.dispatch @" in line
    ]
    assert not any("16x18x18x" in result or "16x324x" in result for result in results)
    image = np.random.default_rng(0).integers(-1, 2, (1, 4, 22, 22)).astype(np.float32)
    expected = run(compile_to_bytes(model, FLAGS), [image])
    np.testing.assert_allclose(run(compile_to_bytes(model, flags), [image]), expected, rtol=1e-4, atol=1e-2)


BIASED = """
  %bias = arith.constant dense<[1.0, -2.0, 3.0, 0.5, 4.0, -1.0, 2.0, 7.0]> : tensor<8xf32>
  %start = linalg.broadcast ins(%bias : tensor<8xf32>) outs(%empty2 : tensor<1x8x18x18xf32>) dimensions = [0, 2, 3]"""


@pytest.mark.landing
def test_no_transpose_stays_where_tokens_become_an_image_that_is_padded(tmp_path: Path) -> None:
    model = write(tmp_path, of_tokens())
    flags = library_for(ChannelsLast(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"channels_last": 3}
    dispatches = [line for line in compiled_to(model, flags, "flow").splitlines() if "flow.dispatch @" in line]
    assert not [line for line in dispatches if "transpose" in line]
    assert "tensor<8x8x16xf32>" in compiled_to(model, flags, "flow"), "the image is padded channels last"
    tokens = np.random.default_rng(0).integers(-4, 5, (1, 64, 16)).astype(np.float32)
    assert_same_results(model, flags, [tokens], least=100)


def test_biases_are_added_to_the_results_of_convolutions(tmp_path: Path) -> None:
    first = layer(2, "conv_2d_nchw_fchw", "%image", ("1x4x20x20", "8x4x3x3", "1x8x18x18"), 1)
    head, _, tail = first.partition("  %init2 =")
    first = head + BIASED.lstrip("\n") + "\n" + tail.partition("\n")[2].replace("%init2", "%start")
    layers = [first, layer(1, "conv_2d_nchw_fchw", "%out2", ("1x8x18x18", "16x8x1x1", "1x16x18x18"), 1)]
    model = write(tmp_path, function("1x4x20x20", "".join(layers), "%out1", "1x16x18x18"))
    flags = library_for(ChannelsLast(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"channels_last": 2}
    dispatches = [line for line in compiled_to(model, flags, "flow").splitlines() if "flow.dispatch @" in line]
    assert len(dispatches) == 2, "the two convolutions"
    image = np.random.default_rng(0).integers(-4, 5, (1, 4, 20, 20)).astype(np.float32)
    assert_same_results(model, flags, [image], least=100)


GROUPED = """
  {pad}
  %groups = tensor.expand_shape %pad0 [[0], [1, 2], [3], [4]] output_shape [1, 2, 4, 20, 20]
    : tensor<1x8x20x20xf32> into tensor<1x2x4x20x20xf32>
  %taps = arith.constant dense<{taps}> : tensor<2x8x4x3x3xf32>
  %nothing = arith.constant 0.0 : f32
  %place = tensor.empty() : tensor<1x2x8x9x9xf32>
  %start = linalg.fill ins(%nothing : f32) outs(%place : tensor<1x2x8x9x9xf32>) -> tensor<1x2x8x9x9xf32>
  %grouped = linalg.conv_2d_ngchw_gfchw {{dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}}
    ins(%groups, %taps : tensor<1x2x4x20x20xf32>, tensor<2x8x4x3x3xf32>) outs(%start : tensor<1x2x8x9x9xf32>)
    -> tensor<1x2x8x9x9xf32>
  %out0 = tensor.collapse_shape %grouped [[0], [1, 2], [3], [4]] : tensor<1x2x8x9x9xf32> into tensor<1x16x9x9xf32>"""


@pytest.mark.landing
def test_grouped_convolutions_are_channels_last_too(tmp_path: Path) -> None:
    layers = [
        layer(2, "conv_2d_nchw_fchw", "%image", ("1x4x18x18", "8x4x1x1", "1x8x18x18"), 1),
        GROUPED.format(pad=padded("%out2", "1x8x18x18", "1x8x20x20", 0), taps=weights("2x8x4x3x3", 5)),
        layer(1, "conv_2d_nchw_fchw", "%out0", ("1x16x9x9", "8x16x1x1", "1x8x9x9"), 1),
    ]
    model = write(tmp_path, function("1x4x18x18", "".join(layers), "%out1", "1x8x9x9"))
    flags = library_for(ChannelsLast(), model, tmp_path)
    text = compiled_to(model, flags, "preprocessing")
    assert rewrites_in(text) == {"channels_last": 3}
    assert "ngchw" not in text
    (grouped,) = (
        line
        for line in compiled_to(model, flags, "flow").splitlines()
        if "flow.dispatch @" in line and "x2x8x3x3x4" in line
    )
    assert "(tensor<20x20x2x4xf32>, tensor<2x3x3x4x8xf32>) -> tensor<9x9x2x8xf32>" in grouped
    image = np.random.default_rng(0).integers(-4, 5, (1, 4, 18, 18)).astype(np.float32)
    assert_same_results(model, flags, [image], least=100)


def test_shuffled_channels_stay_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "FIRST", ())
    model = write(tmp_path, shuffled())
    flags = library_for(ChannelsLast(), model, tmp_path)
    first = re.compile(r"tensor<(?:1x|2x)?(?:4|8|16)x(?:2x|4x|8x)?(?:60|6x10)xf32>")
    dispatches = [line for line in compiled_to(model, flags, "flow").splitlines() if "flow.dispatch @" in line]
    assert [line for line in dispatches[:-1] if first.search(line)] == [], (
        "the image and the result alone are channels first"
    )
    image = np.random.default_rng(0).integers(-1, 2, (1, 4, 8, 12)).astype(np.float32)
    assert_same_results(model, flags, [image], least=100)


DENSE = """
  %both = tensor.concat dim(1) %out0, %out1 : (tensor<1x16x6x10xf32>, tensor<1x8x6x10xf32>) -> tensor<1x24x6x10xf32>
  {second}
  %all = tensor.concat dim(1) %out0, %out1, %out2
    : (tensor<1x16x6x10xf32>, tensor<1x8x6x10xf32>, tensor<1x8x6x10xf32>) -> tensor<1x32x6x10xf32>"""


def test_what_several_joins_begin_with_is_joined_once(tmp_path: Path) -> None:
    second = layer(2, "conv_2d_nchw_fchw", "%both", ("1x24x6x10", "8x24x1x1", "1x8x6x10"), 1)
    layers = [
        layer(0, "conv_2d_nchw_fchw", "%image", ("1x4x8x12", "16x4x3x3", "1x16x6x10"), 1),
        layer(1, "conv_2d_nchw_fchw", "%out0", ("1x16x6x10", "8x16x1x1", "1x8x6x10"), 1),
        DENSE.format(second=second),
        layer(3, "conv_2d_nchw_fchw", "%all", ("1x32x6x10", "8x32x1x1", "1x8x6x10"), 1),
    ]
    model = write(tmp_path, function("1x4x8x12", "".join(layers), "%out3", "1x8x6x10"))
    flags = library_for(ChannelsLast(), model, tmp_path)
    joins = re.findall(r"tensor.concat dim\(3\) (.*?) :", compiled_to(model, flags, "preprocessing"))
    assert [join.count("%") for join in joins] == [2, 2]
    image = np.random.default_rng(0).integers(-1, 2, (1, 4, 8, 12)).astype(np.float32)
    assert_same_results(model, flags, [image], least=100)


def test_a_library_for_another_network_is_an_error(tmp_path: Path, flags: tuple[str, ...]) -> None:
    other = write(tmp_path, network().replace("pooling_nchw_max", "pooling_nchw_sum"))
    with pytest.raises(ModelCompileError):
        compile_to_bytes(other, flags)


def test_a_library_for_a_network_with_another_op_at_the_same_place_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "FIRST", ())
    flags = library_for(ChannelsLast(), write(tmp_path, shuffled()), tmp_path)
    other = write(tmp_path, shuffled().replace("[0, 8, 0, 0]", "[0, 7, 0, 0]", 1))
    with pytest.raises(ModelCompileError):
        compile_to_bytes(other, flags)


def test_a_library_for_a_network_with_a_copy_where_another_one_computes_is_an_error(tmp_path: Path) -> None:
    scaling = "%product = arith.mulf %x, %scale : f32\n    linalg.yield %product : f32"
    copying = gated().replace(scaling, "linalg.yield %scale : f32")
    other = gated().replace(scaling, scaling.replace("arith.mulf %x,", "arith.negf"))
    flags = library_for(ChannelsLast(), write(tmp_path, copying), tmp_path)
    with pytest.raises(ModelCompileError):
        compile_to_bytes(write(tmp_path, other), flags)


def test_a_single_convolution_stays_channels_first(tmp_path: Path) -> None:
    one = layer(0, "conv_2d_nchw_fchw", "%image", ("1x4x20x20", "16x4x3x3", "1x16x18x18"), 1)
    text = function("1x4x20x20", one, "%out0", "1x16x18x18")
    assert not applies(ChannelsLast(), write(tmp_path, text))
