"""The convolution module: which sketches convolutions get, what it refuses, what its scripts make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from convolution_payloads import CONVOLUTIONS, NCHW, NHWC, named
from payload_text import Payload

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import IllegalTraceError
from mlir_sched.payload import Dispatch, OpKind
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common import sharing_loops, vector_loops
from mlir_sched.transform_scripts.extents import chunk
from mlir_sched.transform_scripts.llvm_cpu import convolution
from mlir_sched.transform_scripts.structures import Convolution, Loops

SpaceFor = Callable[[str | Payload], DesignSpace]
TaskFor = Callable[[str | Payload], Task]
POOLING = """func.func @main(%a: tensor<1x16x16x32xf32>) -> tensor<1x8x8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %w = tensor.empty() : tensor<2x2xf32>
  %e = tensor.empty() : tensor<1x8x8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  %r = linalg.pooling_nhwc_sum {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
      ins(%a, %w : tensor<1x16x16x32xf32>, tensor<2x2xf32>) outs(%f : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  return %r : tensor<1x8x8x32xf32>
}
"""


def matched(dispatch: Dispatch) -> Convolution:
    (op,) = (op for op in dispatch.ops if op.kind is OpKind.CONVOLUTION)
    conv = matchers.convolution(op, dispatch)
    assert conv is not None
    return conv


def positions(conv: Convolution, loops: Loops) -> tuple[int, ...]:
    return tuple(map(conv.position, loops))


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_every_class_gets_the_sketch_alone(space_for: SpaceFor, name: str) -> None:
    space = space_for(CONVOLUTIONS[name])
    assert space.sketches == ("convolution",)
    rng = np.random.default_rng(0)
    for _ in range(8):
        trace = space.sample(rng)
        assert space.trace_of(space.script(trace)) == trace
        notes = space.check(trace).notes
        assert notes["accumulator_registers"] <= 24
        assert notes["unrolled_vectors"] <= 512


def test_padding_of_the_vector_loop_is_left_to_the_compiler(space_for: SpaceFor) -> None:
    padding = ((0, 0), (0, 0), (0, 0), (1, 1))
    space = space_for(named(NCHW, (1, 16, 18, 18), (32, 16, 3, 3), (1, 32, 16, 16), padding=padding))
    assert space.dispatch.other_ops == ("tensor.pad",)
    assert space.sketches == ()


def test_a_padded_image_is_read_where_it_is(space_for: SpaceFor) -> None:
    space = space_for(CONVOLUTIONS["2d_padded"])
    (op,) = (op for op in space.dispatch.ops if op.kind is OpKind.CONVOLUTION)
    image, kernel = op.image_and_filter
    assert (image.padded, kernel.padded) == ((0, 1), ())
    assert [image.is_padded_along(loop) for loop in range(6)] == [True, True, False, True, True, False]
    script = space.script(space.sample(np.random.default_rng(0)))
    assert "iree-codegen-vectorize-tensor-pad" in script


@pytest.mark.parametrize(("padding", "most"), [((), 512), (((0, 0), (1, 1), (1, 1), (0, 0)), 256)])
def test_fewer_vectors_are_unrolled_where_each_asks_for_padding(
    space_for: SpaceFor, padding: tuple[tuple[int, int], ...], most: int
) -> None:
    space = space_for(named(NHWC, (1, 18, 18, 64), (3, 3, 64, 64), (1, 16, 16, 64), padding=padding))
    rng = np.random.default_rng(0)
    assert most / 2 < max(space.check(space.sample(rng)).notes["unrolled_vectors"] for _ in range(100)) <= most


def test_a_pooling_is_a_convolution_without_a_filter(space_for: SpaceFor) -> None:
    space = space_for(Payload(POOLING))
    assert space.sketches == ("convolution",)
    conv = matched(space.dispatch)
    assert positions(conv, vector_loops(conv, 16)) == (2,)  # loops h w c i j: the channels
    assert positions(conv, sharing_loops(conv, conv.loops[2])) == (1, 0)


def test_a_channel_count_without_good_divisors_is_mostly_peeled(space_for: SpaceFor) -> None:
    space, rng = space_for(named(NHWC, (1, 6, 10, 8), (3, 3, 8, 41), (1, 4, 8, 41))), np.random.default_rng(0)
    drawn = [space.sample(rng).values for _ in range(50)]
    assert sum(values.get("tail") == "peel" for values in drawn) > 35
    assert sum(values["workgroup_2"] == (41,) for values in drawn) > 35


def test_what_leaves_nothing_to_peel_is_drawn_with_divisors_alone(space_for: SpaceFor) -> None:
    """The other tail strategy makes the same program of sizes that divide."""
    space, rng = space_for(named(NHWC, (1, 33, 18, 8), (3, 3, 8, 32), (1, 31, 16, 32))), np.random.default_rng(0)
    drawn = [space.sample(rng).values for _ in range(200)]
    rows = {tail: {values["rows_0"] for values in drawn if values.get("tail") == tail} for tail in ("peel", "divisor")}
    assert rows["peel"]
    assert rows["peel"] <= set(range(2, 17))
    assert rows["divisor"] == {(1,)}


def test_an_epilogue_with_loops_of_its_own_is_left_to_the_compiler(space_for: SpaceFor) -> None:
    dispatch = space_for(CONVOLUTIONS["2d_bias_relu"]).dispatch
    fill, convolution, epilogue = dispatch.ops
    wider = replace(epilogue, iterator_types=(*epilogue.iterator_types, "parallel"), extents=(*epilogue.extents, 8))
    assert matchers.convolution(convolution, dispatch) is not None
    assert matchers.convolution(convolution, replace(dispatch, ops=(fill, convolution, wider))) is None


@pytest.mark.parametrize(
    ("name", "vectors", "rows"),
    [
        ("2d_bias_relu", (2,), (1, 0)),  # loops h w f i j c
        ("2d_batch", (3,), (2, 1, 0)),  # loops n h w f i j c
        ("2d_nchw", (2,), (0, 1)),  # loops f h w c i j
        ("2d_nchw_strided", (0,), (2, 1)),
        ("2d_nchw_filters_inside", (3,), (2, 1, 0)),  # loops n h w f c i j
        ("2d_few_channels", (2, 0, 1), (1, 0)),
        ("depthwise", (2,), (1, 0)),  # loops h w c i j
        ("transposed_in_phases", (4,), (2, 0)),  # loops i p j q f a b c
    ],
)
def test_vector_and_rows_follow_from_the_roles(
    space_for: SpaceFor, name: str, vectors: tuple[int, ...], rows: tuple[int, ...]
) -> None:
    conv = matched(space_for(CONVOLUTIONS[name]).dispatch)
    assert positions(conv, vector_loops(conv, 16)) == vectors
    assert positions(conv, sharing_loops(conv, conv.loops[vectors[0]])) == rows


def test_vectors_are_powers_of_two_or_less_than_a_register() -> None:
    assert [chunk(size, 16) for size in (3, 14, 16, 24, 48, 56, 64)] == [3, 14, 16, 8, 16, 8, 64]


REFUSED: list[tuple[str, dict[str, Value], str]] = [
    ("2d_bias_relu", {"vector": (32,), "rows_0": (16,), "rows_1": (1,)}, "accumulators take 32 registers of 24"),
    ("2d_bias_relu", {"vector": (24,)}, "not in the support"),
    ("2d_odd", {"tail": "peel", "vector": 24}, "not in the support"),
]


@pytest.mark.parametrize(("name", "values", "rule"), REFUSED, ids=[rule for *_, rule in REFUSED])
def test_rule_refuses(space_for: SpaceFor, name: str, values: dict[str, Value], rule: str) -> None:
    space = space_for(CONVOLUTIONS[name])
    messages = set()
    for seed in range(80):
        try:
            space.run("convolution", Recorder(values, np.random.default_rng(seed), OnIllegal.REJECT))
        except IllegalTraceError as error:
            messages.add(str(error))
    assert any(rule in message for message in messages), messages


HALVES = named(NHWC, (1, 26, 32, 22), (1, 7, 22, 38), (1, 26, 26, 38))
ONE_ITERATION: dict[str, Value] = {
    "workgroup_1": (26,), "workgroup_2": (38,), "tail": "peel", "vector": 32, "rows_0": (1,), "rows_1": (1,),
    "innermost": "filter", "unrolled_loops": 0,
}  # fmt: skip
"""One iteration over 32 of the 38 channels of :data:`HALVES`; the other six are peeled."""
WIDE = named(NHWC, (1, 8, 118, 22), (1, 7, 22, 38), (1, 8, 112, 38))
ONE_ROW: dict[str, Value] = ONE_ITERATION | {"workgroup_1": (112,), "rows": "vector"}
"""The same of :data:`WIDE`, with several rows of the outer loop in a tile."""


SCATTERED = named(NCHW, (1, 3, 49, 49), (32, 3, 3, 3), (1, 32, 24, 24), stride=2, epilogue="d0, d1, d2, d3")
UNEVEN = named(NCHW, (1, 3, 51, 55), (44, 3, 3, 3), (1, 44, 25, 27), stride=2, epilogue="d0, d1, d2, d3")
IN_PLACE = named(NCHW, (1, 3, 49, 49), (32, 3, 3, 3), (1, 32, 24, 24), stride=2)
ACROSS: dict[str, Value] = {
    "workgroup_0": (32,), "workgroup_1": (12,), "workgroup_2": (24,), "vector": (16,), "rows_1": (4,),
    "order": ("0", "1", "2"), "innermost": "filter", "unrolled_loops": 0,
}  # fmt: skip
"""Vectors across the channels of :data:`SCATTERED`, whose image lies row by row: 36,864 bytes of 73,728."""
UNEVEN_ACROSS: dict[str, Value] = {
    "workgroup_0": (44,), "workgroup_1": (5,), "workgroup_2": (27,), "tail": "peel", "vector": 32, "rows_1": (1,),
    "order": ("0", "2", "1"), "innermost": "filter", "unrolled_loops": 0,
}  # fmt: skip
"""The same with 32 of 44 channels: copies of the tile of 23,760 bytes and of the 17,280 in front of what is peeled."""


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(
    ("payload", "values", "rule"),
    [
        (HALVES, ONE_ITERATION | {"workgroup_0": (13,), "order": ("2", "1", "0")}, "parts of the result take 43264"),
        (HALVES, ONE_ITERATION | {"workgroup_0": (13,), "order": ("1", "0", "2")}, ""),
        (HALVES, ONE_ITERATION | {"workgroup_0": (26,), "order": ("2", "1", "0")}, ""),
        (WIDE, ONE_ROW | {"workgroup_0": (8,), "rows_0": (4,), "order": ("0", "2", "1")}, "the result take 57344"),
        (WIDE, ONE_ROW | {"workgroup_0": (8,), "rows_0": (2,), "order": ("0", "2", "1")}, ""),
        (WIDE, ONE_ROW | {"workgroup_0": (4,), "rows_0": (4,), "order": ("0", "2", "1")}, "the result take 57344"),
        (WIDE, ONE_ROW | {"workgroup_0": (4,), "rows_0": (4,), "order": ("2", "0", "1")}, "the result take 57344"),
        (WIDE, ONE_ROW | {"workgroup_0": (2,), "rows_0": (2,), "order": ("2", "0", "1")}, ""),
        (SCATTERED, ACROSS | {"rows_2": (2,)}, "parts of the result take 36864"),
        (SCATTERED, ACROSS | {"rows_2": (1,)}, ""),
        (SCATTERED, ACROSS | {"rows_2": (2,), "workgroup_1": (24,)}, ""),
        (IN_PLACE, ACROSS | {"rows_2": (2,)}, ""),
        (UNEVEN, UNEVEN_ACROSS | {"rows_2": (9,)}, "parts of the result take 47520"),
        (UNEVEN, UNEVEN_ACROSS | {"rows_2": (1,)}, ""),
    ],
)
def test_a_part_of_the_result_above_the_stack_is_refused_as_by_the_compiler(
    task_for: TaskFor,
    here: Target,
    monkeypatch: pytest.MonkeyPatch,
    payload: Payload,
    values: dict[str, Value],
    rule: str,
) -> None:
    task, wide = task_for(payload), replace(here, vector_bytes=64, vector_registers=32)
    assert task.dispatch is not None
    space = DesignSpace(Space.default(wide), task.dispatch, wide)

    def script() -> str:
        return space.script(space.run("convolution", Recorder(values, on_illegal=OnIllegal.REJECT))[0])

    if rule:
        with pytest.raises(IllegalTraceError, match=f"{rule} bytes of the 32768"):
            script()
        monkeypatch.setattr(convolution, "_require_on_stack", lambda *_, **__: None)
    with CompilerPool(task.flags) as pool:
        ((_, result),) = pool.compile(task.source, [script()])
    assert (result.failure is not None and "stack allocation limit" in result.failure.message) == bool(rule)


def test_a_result_in_another_layout_is_transposed_in_registers(space_for: SpaceFor) -> None:
    space = space_for(CONVOLUTIONS["2d_nchw_filters_inside_padded"])
    values: dict[str, Value] = {
        "workgroup_0": (16,), "workgroup_1": (32,), "workgroup_2": (32,), "vector": (32,), "rows_1": (8,),
        "rows_0": (1,), "order": ("0", "1", "2"), "innermost": "filter", "unrolled_loops": 0,
    }  # fmt: skip
    script = space.script(space.run("convolution", Recorder(values, on_illegal=OnIllegal.REJECT))[0])
    assert script.count("tile_sizes [0, 1, 0] ") == 1  # the fill: a row after the other
    assert script.count("tile_sizes [0, 0, 16]") == 1  # what stores the result: blocks of all rows and one register


def test_golden_script(space_for: SpaceFor, golden: Callable[[str, str], None]) -> None:
    space = space_for(CONVOLUTIONS["2d_odd_strided"])
    values: dict[str, Value] = {
        "workgroup_0": (23,),
        "workgroup_1": (19,),
        "workgroup_2": (19,),
        "tail": "peel",
        "vector": 16,
        "rows_1": 8,
        "rows_0": 1,
        "order": ("2", "0", "1"),
        "innermost": "channels",
        "unrolled_loops": 1,
    }
    script = space.script(space.run("convolution", Recorder(values, on_illegal=OnIllegal.REJECT))[0])
    golden("convolution", script)
