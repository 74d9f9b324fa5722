"""The Vulkan transform modules: which sketches a dispatch gets, what they refuse, the scripts they make."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from contraction_payloads import matmul
from fixed_targets import FIXED, FIXED_VULKAN, assert_golden, assert_refused, space_of
from folders import ROOT, TESTS
from payload_text import Payload
from payloads import row_sum, vector_add, widened_bytes

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import FailureClass, IllegalTraceError, UserError
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks import TASK_FLAGS, extract
from mlir_sched.tasks.task import Task
from mlir_sched.tasks.unscheduled import why_unscheduled
from mlir_sched.transform_scripts import llvm_cpu

TaskFor = Callable[[str | Payload], Task]
EXAMPLE = ROOT / "examples" / "custom_transform_module.py"
CONTRACTION = {"contraction.threads", "lowering_config"}
SHARED = {*CONTRACTION, "shared_contraction", "promoted_config"}
SKETCHES: dict[str, set[str]] = {
    "matmul": SHARED,
    "matmul_uneven": CONTRACTION,
    "matmul_accumulating": CONTRACTION,
    "matmul_i8": CONTRACTION,
    "matmul_f16": SHARED,
    "batch_matmul_bt": SHARED,
    "vecmat": CONTRACTION,
    "matvec": {*CONTRACTION, "subgroup_reduction"},
    "bias_gelu": SHARED,
    "two_epilogues": SHARED,
    "elementwise_chain": {"elementwise", "linear_elementwise", "lowering_config"},
    "below_diagonal": {"elementwise", "lowering_config"},
    "transpose": {"elementwise", "linear_elementwise", "lowering_config"},
    "vector_add_uneven": {"elementwise", "linear_elementwise", "lowering_config"},
    "every_other_pixel": {"lowering_config"},
    **{key: {"subgroup_reduction"} for key in ("row_sum", "softmax", "layernorm", "scale_rows", "sum_of_squares")},
}


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", SKETCHES)
def test_dispatch_gets_the_sketches_that_suit_it(vulkan_task_for: TaskFor, name: str) -> None:
    assert set(space_of(vulkan_task_for(name), FIXED_VULKAN).sketches) == SKETCHES[name]


@pytest.mark.promise
@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", ["convolutional", "transformer"])
def test_what_computes_in_an_exported_network_has_sketches(name: str) -> None:
    """All but copies, and what reads a table at computed places."""
    tasks = extract(TESTS / "exported" / f"{name}.mlir", FIXED_VULKAN, TASK_FLAGS).tasks
    left = [task for task in tasks if task.dispatch is None or not space_of(task, FIXED_VULKAN).sketches]
    assert len(left) == 1
    assert why_unscheduled(left[0]).startswith(("it only copies", "it gathers"))


def test_bytes_are_widened_one_after_the_other(vulkan_task_for: TaskFor) -> None:
    """Vectors of them lose their signs in IREE 3.13, in its own pipeline, too."""
    assert space_of(vulkan_task_for(widened_bytes(64, 96)), FIXED_VULKAN).sketches == ("linear_elementwise",)


REFUSED: list[tuple[Payload, str, dict[str, Value], str]] = [
    (
        matmul(256, 256, 64),
        "contraction.threads",
        {"tile_0": (64, 1), "tile_1": (256, 4)},
        "4096 threads per workgroup > 1024",
    ),
    (
        matmul(96, 120, 72),
        "contraction.threads",
        {"tile_0": (12, 4), "tile_1": (60, 4)},
        "45 threads per workgroup are no whole subgroups of 8",
    ),
    (
        matmul(256, 256, 64),
        "contraction.threads",
        {"tile_0": (256, 16), "tile_1": (256, 16)},
        "256 results per thread are more than 128",
    ),
    (
        matmul(256, 256, 64),
        "contraction.threads",
        {"tile_0": (64, 8), "tile_1": (64, 16), "reduction_step": (16,)},
        "512 unrolled vectors are more than 256",
    ),
    (
        matmul(256, 256, 64),
        "lowering_config",
        {"tile_0": (64, 8), "tile_1": (64, 16), "reduction_step": (16,)},
        "512 unrolled vectors are more than 256",
    ),
    (matmul(256, 256, 64), "contraction.threads", {"tile_0": (56, 7)}, r"tile_0 = \(56, 7\) is not in the support"),
    (matmul(256, 256, 64), "lowering_config", {"tile_0": (56, 7)}, r"tile_0 = \(56, 7\) is not in the support"),
    (
        matmul(256, 256, 64),
        "shared_contraction",
        {"tile_rows": (128, 8), "tile_columns": (64, 8), "reduction_step": 64},
        "reduction_step = 64 is not in the support",
    ),
    (
        matmul(256, 256, 64),
        "promoted_config",
        {"tile_rows": (64, 8), "tile_columns": (16, 16)},
        "IREE does not share the copies among threads of which there is one along x",
    ),
    (
        matmul(256, 256, 256),
        "promoted_config",
        {"tile_rows": (32, 1), "tile_columns": (16, 8), "reduction_step": 64, "pipeline": "1, late"},
        "1152 elements read per thread are more than 1024",
    ),
    (
        matmul(256, 256, 64),
        "promoted_config",
        {"tile_rows": (16, 4), "tile_columns": (16, 4), "reduction_step": 64},
        "no step of the reduction can be under way",
    ),
    (row_sum(64, 1024), "subgroup_reduction", {"vector": 4, "threads": 128}, "threads = 128 is not in the support"),
    (vector_add(1 << 20), "elementwise", {"tile_0": (8, 4)}, "131072 workgroups along x > 65535"),
    (vector_add(1 << 20), "lowering_config", {"tile_0": (16384, 4)}, "4096 threads per workgroup > 1024"),
]


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(("payload", "sketch", "values", "rule"), REFUSED, ids=[rule for *_, rule in REFUSED])
def test_limit_of_the_device_refuses(
    vulkan_task_for: TaskFor, payload: Payload, sketch: str, values: dict[str, Value], rule: str
) -> None:
    assert_refused(space_of(vulkan_task_for(payload), FIXED_VULKAN), sketch, values, rule)


def test_the_compiler_accepts_what_its_limit_refuses(vulkan_task_for: TaskFor, vulkan_pool: CompilerPool) -> None:
    """Nothing but the static rule keeps a workgroup of 4096 threads from the device."""
    task = vulkan_task_for(matmul(256, 256, 64))
    trace = space_of(task, FIXED_VULKAN).sample(np.random.default_rng(0), "lowering_config")
    script = space_of(task, FIXED_VULKAN).script(trace)
    start = script.index("workgroup_size = [")
    oversized = script[:start] + "workgroup_size = [4096, 1, 1" + script[script.index("]", start) :]
    ((_, result),) = vulkan_pool.compile(task.source, [oversized])
    assert result.failure is None


GOLDENS: dict[str, tuple[str, str, dict[str, Value]]] = {
    "contraction_threads": (
        "bias_gelu",
        "contraction.threads",
        {"tile_0": (48, 6), "tile_1": (96, 8), "reduction_step": (4,)},
    ),
    "shared_contraction": (
        "bias_gelu",
        "shared_contraction",
        {"tile_rows": (16, 4), "tile_columns": (32, 4), "reduction_step": 16},
    ),
    "promoted_config": (
        "bias_gelu",
        "promoted_config",
        {"tile_rows": (16, 4), "tile_columns": (32, 4), "reduction_step": 16, "pipeline": "2, early"},
    ),
    "subgroup_reduction": ("layernorm", "subgroup_reduction", {"vector": 4, "threads": 48, "repeats": 1}),
    "elementwise": ("transpose", "elementwise", {"tile_0": (48, 4), "tile_1": (32, 4)}),
    "lowering_config": (
        "batch_matmul_bt",
        "lowering_config",
        {"tile_1": (32, 4), "tile_2": (48, 4), "reduction_step": (8,)},
    ),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_golden_script(vulkan_task_for: TaskFor, name: str, golden: Callable[[str, str], None]) -> None:
    payload, sketch, values = GOLDENS[name]
    assert_golden(golden, f"vulkan/{name}", space_of(vulkan_task_for(payload), FIXED_VULKAN), sketch, values)


def test_a_script_that_does_not_count_its_workgroups_is_not_applied(
    vulkan_task_for: TaskFor, vulkan_pool: CompilerPool
) -> None:
    """IREE compiles it all the same, and it computes a part of the result."""
    task = vulkan_task_for("matmul")
    space = space_of(task, FIXED_VULKAN)
    script = space.script(space.sample(np.random.default_rng(0), "contraction.threads"))
    uncounted = "".join(line for line in script.splitlines(True) if "populate_workgroup_count" not in line)
    assert uncounted != script
    ((_, result),) = vulkan_pool.compile(task.source, [uncounted])
    assert result.failure is not None
    assert result.failure.kind is FailureClass.NOT_APPLIED
    assert "does not set the number of workgroups" in result.failure.message


def test_a_script_for_the_cpu_is_a_recorded_failure(
    task_for: TaskFor, vulkan_task_for: TaskFor, vulkan_pool: CompilerPool
) -> None:
    dispatch = task_for("matmul").dispatch
    assert dispatch is not None
    cpu = DesignSpace(Space.default(FIXED), dispatch, FIXED)
    script = cpu.script(cpu.sample(np.random.default_rng(0), "contraction.registers"))
    task = vulkan_task_for("matmul")
    ((_, result),) = vulkan_pool.compile(task.source, [script])
    assert result.failure is not None


def test_a_module_for_another_target_is_refused_by_its_stage() -> None:
    space = Space([llvm_cpu.Lowering(), *Space.default(FIXED_VULKAN).remove("lowering").modules])
    with pytest.raises(UserError, match=r"'lowering' cannot be used for the target vulkan: its stage 'lower' is for"):
        space.for_target(FIXED_VULKAN)


SAMPLED = tuple(name for name in SKETCHES if name != "vector_add_uneven")


def test_extents_without_divisors_have_no_legal_candidate(vulkan_task_for: TaskFor) -> None:
    space = space_of(vulkan_task_for("vector_add_uneven"), FIXED_VULKAN)
    with pytest.raises(IllegalTraceError, match="1000003 workgroups along x"):
        space.sample(np.random.default_rng(0), "elementwise")


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", SAMPLED)
def test_a_random_candidate_per_sketch_compiles(vulkan_task_for: TaskFor, vulkan_pool: CompilerPool, name: str) -> None:
    """This takes no device; on a device, the contract tests compile and run several of each."""
    task, rng = vulkan_task_for(name), np.random.default_rng(3)
    space = space_of(task, FIXED_VULKAN)
    traces = [space.sample(rng, sketch) for sketch in space.sketches]
    results = dict(vulkan_pool.compile(task.source, [space.script(trace) for trace in traces]))
    assert {str(traces[i].values): r.failure for i, r in results.items() if r.failure is not None} == {}
