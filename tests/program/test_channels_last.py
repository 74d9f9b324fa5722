"""Networks computed channels last: the same numbers, and hardly a transpose left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from iree_cases import FLAGS
from rewriting import applies, compiled_to, library_for, run, write

from mlir_sched.compiler import ModelCompileError, compile_to_bytes
from mlir_sched.compiler.model import rewrites_in
from mlir_sched.program.rewrites import ChannelsLast
from mlir_sched.program.variants import LAYOUT, NO_TIME, SETTLED, Choice, build_variants
from mlir_sched.runner import RacingOptions, Runner, RunnerOptions
from mlir_sched.targets.target import Target

CONVOLUTION = """
  {pad}
  %zero{n} = arith.constant 0.0 : f32
  %empty{n} = tensor.empty() : tensor<{result}xf32>
  %init{n} = linalg.fill ins(%zero{n} : f32) outs(%empty{n} : tensor<{result}xf32>) -> tensor<{result}xf32>
  {filter_of}
  %out{n} = linalg.{op} {{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}
    ins({input}, %f{n} : tensor<{padded}xf32>, tensor<{filter}xf32>) outs(%init{n} : tensor<{result}xf32>)
    -> tensor<{result}xf32>"""
SUM = "\n  %sum = arith.addf %out3, %out4 : tensor<1x32x8x8xf32>"


def padded(value: str, shape: str, result: str, n: int) -> str:
    return f"""%edge{n} = arith.constant 0.0 : f32
  %pad{n} = tensor.pad {value} low[0, 0, 1, 1] high[0, 0, 1, 1] {{
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %edge{n} : f32
  }} : tensor<{shape}xf32> to tensor<{result}xf32>"""


def layer(n: int, op: str, value: str, sizes: tuple[str, str, str], stride: int, pad: str = "") -> str:
    image, taps, result = sizes
    filter_of = f"%f{n} = arith.constant dense<{weights(taps, n)}> : tensor<{taps}xf32>"
    if "pooling" in op:
        filter_of = f"%f{n} = tensor.empty() : tensor<{taps}xf32>"
    return CONVOLUTION.format(
        n=n, op=op, input=value, padded=image, filter=taps, result=result, stride=stride, pad=pad, filter_of=filter_of
    )


def weights(taps: str, n: int) -> str:
    shape = [int(size) for size in taps.split("x")]
    return str(np.random.default_rng(n).integers(-2, 3, shape).astype(np.float64).tolist())


def network() -> str:
    """Return two branches: 3x3, depthwise and pooling; and 1x1 with a stride of 2, whose image has other readers."""
    first = padded("%image", "1x4x18x18", "1x4x20x20", 0)
    second = padded("%out0", "1x16x18x18", "1x16x20x20", 1)
    layers = [
        layer(0, "conv_2d_nchw_fchw", "%pad0", ("1x4x20x20", "16x4x3x3", "1x16x18x18"), 1, first),
        layer(1, "depthwise_conv_2d_nchw_chw", "%pad1", ("1x16x20x20", "16x3x3", "1x16x18x18"), 1, second),
        layer(2, "pooling_nchw_max", "%out1", ("1x16x18x18", "3x3", "1x16x8x8"), 2),
        layer(3, "conv_2d_nchw_fchw", "%out2", ("1x16x8x8", "32x16x1x1", "1x32x8x8"), 1),
        layer(4, "conv_2d_nchw_fchw", "%part", ("1x16x16x16", "32x16x1x1", "1x32x8x8"), 2),
    ]
    part = """
  %part = tensor.extract_slice %out0[0, 0, 1, 1] [1, 16, 16, 16] [1, 1, 1, 1]
    : tensor<1x16x18x18xf32> to tensor<1x16x16x16xf32>"""
    body = "".join([*layers[:4], part, layers[4], SUM])
    return function("1x4x18x18", body, "%sum", "1x32x8x8")


def function(image: str, body: str, value: str, result: str) -> str:
    arguments, results = f"(%image: tensor<{image}xf32>)", f"tensor<{result}xf32>"
    return f"func.func @main{arguments} -> {results} {{{body}\n  return {value} : {results}\n}}\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("channels_last"), network())


@pytest.fixture(scope="module")
def flags(model: Path) -> tuple[str, ...]:
    return library_for(ChannelsLast(), model, model.parent)


def test_a_network_computes_the_same(model: Path, flags: tuple[str, ...]) -> None:
    image = np.random.default_rng(0).integers(-4, 5, (1, 4, 18, 18)).astype(np.float32)
    expected = run(compile_to_bytes(model, FLAGS), [image])
    assert np.unique(expected).size > 100
    np.testing.assert_array_equal(run(compile_to_bytes(model, flags), [image]), expected)


def test_every_convolution_and_pooling_is_converted_and_counted(model: Path, flags: tuple[str, ...]) -> None:
    text = compiled_to(model, flags, "preprocessing")
    assert rewrites_in(text) == {"channels_last": 5}
    assert "nchw" not in text


def test_transposes_stay_at_the_ends_alone(model: Path, flags: tuple[str, ...]) -> None:
    dispatches = [line for line in compiled_to(model, flags, "flow").splitlines() if "flow.dispatch @" in line]
    assert sum("transpose" in line for line in dispatches) <= 2
    assert any("depthwise" in line or "conv" in line for line in dispatches)


def test_a_library_for_another_network_is_an_error(tmp_path: Path, flags: tuple[str, ...]) -> None:
    other = write(tmp_path, network().replace("pooling_nchw_max", "pooling_nchw_sum"))
    with pytest.raises(ModelCompileError):
        compile_to_bytes(other, flags)


def test_a_single_convolution_stays_channels_first(tmp_path: Path) -> None:
    one = layer(0, "conv_2d_nchw_fchw", "%image", ("1x4x20x20", "16x4x3x3", "1x16x18x18"), 1)
    text = function("1x4x20x20", one, "%out0", "1x16x18x18")
    assert not applies(ChannelsLast(), write(tmp_path, text))


class Told(Choice):
    """A choice that is told what the layout settles, and remembers what it was asked."""

    def __init__(self, *, settled: bool) -> None:
        self.settled = settled
        self.asked: list[str] = []

    def wants(self, name: str) -> bool:
        self.asked.append(name)
        return name in (LAYOUT, "O3")

    def settles(self, ratio: float) -> bool:
        assert ratio > 0
        self.asked.append("settles")
        return self.settled


def test_the_layout_is_tried_first_and_may_be_all(model: Path, here: Target) -> None:
    choice = Told(settled=True)
    with Runner(RunnerOptions(racing=RacingOptions(budget_s=0.02, min_pairs=2))) as runner:
        variants = build_variants(model, here, runner, (), choice)
    assert choice.asked == [LAYOUT, "settles"]
    assert [built.variant.name for built in variants.built] == ["default", LAYOUT]
    assert set(variants.left_out.values()) == {SETTLED}
    assert {"O3", "data-tiling", "contiguous_filters"} <= variants.left_out.keys()


def test_a_layout_that_settles_nothing_is_a_variant_among_others(model: Path, here: Target) -> None:
    choice = Told(settled=False)
    with Runner(RunnerOptions(racing=RacingOptions(budget_s=0.02, min_pairs=2))) as runner:
        variants = build_variants(model, here, runner, (), choice)
    assert choice.asked[:2] == [LAYOUT, "settles"]
    assert {built.variant.name for built in variants.built} - {"O3"} == {"default", LAYOUT}
    assert set(variants.left_out.values()) == {NO_TIME}
