"""Convolutions and poolings on GPUs: which sketches they get, what becomes of their loops, what the rules refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from convolution_payloads import CONVOLUTIONS, FUSED_PADDING, POOLINGS, padded_network
from fixed_targets import FIXED_CUDA, FIXED_VULKAN, assert_golden, assert_refused, space_of
from payload_text import Payload

from mlir_sched.payload import OpKind
from mlir_sched.sampling import Value
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS, extract
from mlir_sched.tasks.task import Task
from mlir_sched.transform_scripts.gpu import ConvolutionTiling
from mlir_sched.transform_scripts.gpu.convolution import ThreadConvolution
from mlir_sched.transform_scripts.structures import Loops

pytestmark = pytest.mark.promise

TaskFor = Callable[[str | Payload], Task]
UNPADDED = {name: payload for name, payload in (CONVOLUTIONS | POOLINGS).items() if payload.flags != FUSED_PADDING}


def found_in(task: Task) -> ThreadConvolution:
    assert task.dispatch is not None
    (op,) = (op for op in task.dispatch.ops if op.kind is OpKind.CONVOLUTION)
    found = ConvolutionTiling().match(op, task.dispatch, FIXED_VULKAN)
    assert found is not None
    return found


def positions(found: ThreadConvolution, loops: Loops) -> tuple[int, ...]:
    return tuple(map(found.conv.position, loops))


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", UNPADDED)
def test_every_class_gets_the_sketch_alone(vulkan_task_for: TaskFor, name: str) -> None:
    assert space_of(vulkan_task_for(UNPADDED[name]), FIXED_VULKAN).sketches == ("convolution",)


def test_a_padded_image_is_left_to_the_compiler(vulkan_task_for: TaskFor) -> None:
    assert space_of(vulkan_task_for(CONVOLUTIONS["2d_padded"]), FIXED_VULKAN).sketches == ()


@pytest.mark.parametrize("target", [FIXED_VULKAN, FIXED_CUDA], ids=["vulkan", "cuda"])
def test_the_convolutions_of_a_padded_network_are_scheduled_and_only_a_copy_is_not(
    target: Target, tmp_path: Path
) -> None:
    """IREE copies the first image into a padded one; other dispatches write what they compute into padded ones."""
    path = tmp_path / "model.mlir"
    path.write_text(padded_network().text)
    copy, *others = extract(path, target, TASK_FLAGS).tasks
    assert copy.not_tunable.startswith("it only copies")
    assert [space_of(task, target).sketches for task in others] == [
        ("convolution",)
    ] * 2  # two convolutions are one task


@pytest.mark.parametrize(
    ("name", "distributed", "walked", "unrolled"),
    [
        ("2d_bias_relu", (0, 1, 2), (), ()),  # loops h w f i j c
        ("2d_transposed_result", (0, 2, 1), (), ()),  # the result is f h w
        ("2d_strided", (1, 2, 3), (0,), (2,)),  # loops n h w f i j c
        ("2d_nchw", (1, 0, 2), (), ()),  # loops f h w c i j
        ("2d_nchw_strided", (1, 0, 2), (2,), ()),
        ("2d_nchw_filters_inside", (1, 3, 2), (0,), (2,)),  # loops n h w f c i j, the result is n f h w
        ("depthwise", (0, 1, 2), (), ()),  # loops h w c i j
        ("grouped_nhwgc", (0, 1, 3), (2,), (1,)),  # loops h w g c i j k
        ("3d", (1, 2, 3), (0,), ()),  # loops d h w f i j k c
        ("max_pooling", (0, 1, 2), (), (1,)),  # loops h w c i j
    ],
)
def test_loops_follow_from_the_roles(
    vulkan_task_for: TaskFor,
    name: str,
    distributed: tuple[int, ...],
    walked: tuple[int, ...],
    unrolled: tuple[int, ...],
) -> None:
    found = found_in(vulkan_task_for(UNPADDED[name]))
    assert positions(found, found.distributed) == distributed
    assert positions(found, found.walked) == walked
    assert positions(found, found.unrolled) == unrolled


REFUSED: list[tuple[str, dict[str, Value], str]] = [
    (
        "2d_bias_relu",
        {"tile_1": (16, 16), "tile_2": (32, 16)},
        "256 results per thread are more than 128",
    ),
    (
        "2d_bias_relu",
        {"tile_1": (16, 8), "tile_2": (32, 16), "channels": (16,)},
        "512 unrolled vectors are more than 256",
    ),
    ("2d_odd", {"tile_1": (1, 1), "tile_2": (1, 1)}, "a thread's vectors have one element"),
    ("2d_nchw_strided", {"tile_0": (8, 1), "tile_2": (16, 16)}, "a thread's vectors have one element"),
]


@pytest.mark.parametrize(("name", "values", "rule"), REFUSED)
def test_rule_refuses(vulkan_task_for: TaskFor, name: str, values: dict[str, Value], rule: str) -> None:
    assert_refused(space_of(vulkan_task_for(UNPADDED[name]), FIXED_VULKAN), "convolution", values, rule)


GOLDENS: dict[str, tuple[str, dict[str, Value]]] = {
    "convolution": (
        "2d_strided",
        {"tile_2": (13, 13), "tile_3": (32, 4), "channels": (1,), "innermost": "filter"},
    ),
    "pooling": ("max_pooling_nchw", {"tile_1": (8, 2), "tile_2": (16, 4)}),
}


def test_channels_that_are_summed_at_once_have_no_place_in_the_order_of_the_loops(vulkan_task_for: TaskFor) -> None:
    space = space_of(vulkan_task_for(UNPADDED["2d_strided"]), FIXED_VULKAN)
    drawn = [space.sample(np.random.default_rng(seed), "convolution").values for seed in range(20)]
    assert {("innermost" in values, values["channels"]) for values in drawn} == {(True, (1,)), (False, (3,))}


@pytest.mark.parametrize("name", GOLDENS)
def test_golden_script(vulkan_task_for: TaskFor, name: str, golden: Callable[[str, str], None]) -> None:
    payload, values = GOLDENS[name]
    assert_golden(
        golden, f"vulkan/{name}", space_of(vulkan_task_for(UNPADDED[payload]), FIXED_VULKAN), "convolution", values
    )
