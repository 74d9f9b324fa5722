"""Scripts for GPUs with one planted fault each, of those that IREE compiles in silence or dies of; none is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from contraction_payloads import matmul
from fixed_targets import FIXED_CUDA, FIXED_VULKAN
from payload_text import Payload

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import FailureClass
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder

TaskFor = Callable[[str | Payload], Task]
Fault = Callable[[str], str]
SKETCH = "shared_contraction"
MATRICES = matmul(256, 256, 256)
SHARED: dict[str, Value] = {"tile_rows": (64, 8), "tile_columns": (64, 8), "reduction_step": 16}
PIPELINED: dict[str, Value] = {**SHARED, "bank_conflicts": "kept", "pipeline_depth": 3}
THREADS = "mapping = [#gpu.thread<y>, #gpu.thread<x>]"


def replaced(old: str, new: str, count: int = -1) -> Fault:
    return lambda script: script.replace(old, new, count)


def without(op: str) -> Fault:
    return lambda script: "".join(line for line in script.splitlines(True) if op not in line)


def launched_with(size: str) -> Fault:
    """Annotate another size of the workgroup than the one whose threads were mapped, or none."""

    def plant(script: str) -> str:
        start = script.rindex("    transform.annotate ")
        function = script[start:].split()[1]
        launch = f" workgroup_size = {size}" if size else ""
        info = f"#iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline{launch}>"
        annotated = f"""    %info = transform.param.constant {info} -> !transform.any_param
    transform.annotate {function} "translation_info" = %info : !transform.any_op, !transform.any_param
"""
        return script[:start] + annotated + script[start:]

    return plant


def padded_rows(script: str) -> str:
    """Pad the rows of shared tiles, as CUDA's lowering does."""
    start = script.rindex("    transform.annotate ")
    function = script[start:].split()[1]
    op = f"    transform.iree.reduce_shared_memory_bank_conflicts {function} <padding_size_bits = 128>"
    return f"{script[:start]}{op} : (!transform.any_op) -> ()\n{script[start:]}"


RACE, CRASH, REFUSED = FailureClass.DATA_RACE, FailureClass.COMPILE_CRASH, FailureClass.SCRIPT_ERROR
CUDA_FAULTS: dict[str, tuple[Fault, FailureClass, str]] = {
    "fewer buffers than steps under way": (
        replaced("factor = 3", "factor = 2"),
        RACE,
        "3 steps deep through 2 buffers",
    ),
    "one buffer for all steps": (without("transform.memref.multibuffer"), RACE, "3 steps deep through 1 buffers"),
    "fill by other threads than the product": (
        replaced(THREADS, "mapping = [#gpu.thread<x>, #gpu.thread<y>]", 1),
        RACE,
        "threads read results at [y, x] that others write at [x, y]",
    ),
    "fewer threads launched than mapped": (
        launched_with("[4, 8, 1]"),
        FailureClass.NOT_APPLIED,
        "maps the threads of a workgroup of (8, 8, 1) and launches (4, 8, 1)",
    ),
    "no size of the workgroup": (
        launched_with(""),
        FailureClass.NOT_APPLIED,
        "maps the threads of a workgroup of (8, 8, 1) and launches another",
    ),
    "fewer threads mapped than there are tiles": (
        replaced("workgroup_dims = [8, 8, 1]", "workgroup_dims = [4, 8, 1]"),
        REFUSED,
        "overflows the number of available resources",
    ),
    "a pipeline without asynchronous copies": (without("transform.iree.create_async_groups"), CRASH, "SIGSEGV"),
    "copies that cannot be asynchronous": (
        without("transform.apply_patterns.vector.cast_away_vector_leading_one_dim"),
        CRASH,
        "SIGSEGV",
    ),
}


def script_of(task: Task, target: Target, values: dict[str, Value], sketch: str = SKETCH) -> str:
    assert task.dispatch is not None
    space = DesignSpace(Space.default(target), task.dispatch, target)
    return space.script(space.run(sketch, Recorder(values, on_illegal=OnIllegal.REJECT))[0])


def check_planted(pool: CompilerPool, task: Task, script: str, planted_fault: tuple[Fault, FailureClass, str]) -> None:
    """Check that a fault is found, and that the script without it compiles after, also where it ends the compiler."""
    fault, kind, message = planted_fault
    planted = fault(script)
    assert planted != script
    results = dict(pool.compile(task.source, [planted, script]))
    assert results[1].failure is None
    failure = results[0].failure
    assert failure is not None
    assert (failure.kind, results[0].vmfb) == (kind, None)
    assert message in failure.message


@pytest.fixture(scope="module")
def cuda_pool() -> Iterator[CompilerPool]:
    with CompilerPool(FIXED_CUDA.flags, workers=1) as made:
        yield made


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", CUDA_FAULTS)
def test_a_planted_fault_is_found(cuda_task_for: TaskFor, cuda_pool: CompilerPool, name: str) -> None:
    task = cuda_task_for(MATRICES)
    check_planted(cuda_pool, task, script_of(task, FIXED_CUDA, PIPELINED), CUDA_FAULTS[name])


TENSOR_CORE_FAULTS: dict[str, tuple[Fault, FailureClass, str]] = {
    "fewer buffers than steps under way": CUDA_FAULTS["fewer buffers than steps under way"],
    "fewer threads mapped than warps have": (
        replaced("workgroup_dims = [128, 1, 1]", "workgroup_dims = [64, 1, 1]"),
        REFUSED,
        "overflows the number of available resources",
    ),
}
WARPS: dict[str, Value] = {
    **{"tile_rows": (64, 32), "tile_columns": (64, 32), "reduction_step": 32},
    **{"bank_conflicts": "avoided", "pipeline_depth": 3},
}


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", TENSOR_CORE_FAULTS)
def test_a_planted_fault_is_found_on_tensor_cores(cuda_task_for: TaskFor, cuda_pool: CompilerPool, name: str) -> None:
    task = cuda_task_for(matmul(256, 256, 256, "f16", "f32"))
    script = script_of(task, FIXED_CUDA, WARPS, "tensor_core")
    check_planted(cuda_pool, task, script, TENSOR_CORE_FAULTS[name])


VULKAN_FAULTS: dict[str, tuple[Fault, FailureClass, str]] = {
    "fill by other threads than the product": CUDA_FAULTS["fill by other threads than the product"],
    "fewer threads launched than mapped": CUDA_FAULTS["fewer threads launched than mapped"],
    "accumulators that SPIR-V has no vectors for": (
        replaced("iree-spirv-initial-vector-lowering", "canonicalize"),
        FailureClass.COMPILE_ERROR,
        "should be broken down by prior passes",
    ),
    "rows padded against bank conflicts": (padded_rows, FailureClass.COMPILE_ERROR, "failed to legalize"),
}


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", VULKAN_FAULTS)
def test_a_planted_fault_is_found_for_vulkan(vulkan_task_for: TaskFor, name: str) -> None:
    task = vulkan_task_for(MATRICES)
    with CompilerPool(FIXED_VULKAN.flags, workers=1) as pool:
        check_planted(pool, task, script_of(task, FIXED_VULKAN, SHARED), VULKAN_FAULTS[name])
