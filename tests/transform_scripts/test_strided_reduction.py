"""Reductions in strides across the threads of NVIDIA's GPUs: which dispatches, their numbers, and their memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from contraction_payloads import matmul, matvec, vecmat
from fixed_targets import FIXED_CUDA, space_of
from numpy.typing import NDArray
from payload_text import Payload
from ptx import assembled, ptx_of
from ptx_machine import run_kernel
from reduction_payloads import reduced

from mlir_sched.compiler import CompilerPool
from mlir_sched.compiler.compile_result import CompileResult
from mlir_sched.gpu_model.ptx import read_kernel
from mlir_sched.sampling import Value
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder

TaskFor = Callable[[str | Payload], Task]
STRIDED = "strided_reduction"
ROWS, COLUMNS, BATCHES = 1024, 64, 2


@pytest.mark.parametrize(
    ("payload", "known"),
    [
        (vecmat(COLUMNS, ROWS), True),
        (reduced((ROWS, COLUMNS), (0,)), True),
        (reduced((BATCHES, ROWS, COLUMNS), (1,)), True),
        (reduced((256, 64), (0,), kind="f16"), True),
        (matvec(COLUMNS, ROWS), False),
        (matmul(64, 64, 1024), False),
        (reduced((ROWS, COLUMNS), (1,)), False),
        (reduced((509, COLUMNS), (0,)), False),
        (reduced((8, ROWS, COLUMNS), (0, 1)), True),
        (reduced((8, 2, ROWS, COLUMNS), (0, 2)), False),
    ],
    ids=["vecmat", "columns", "batches", "f16", "matvec", "matmul", "rows", "prime", "collapsed", "two loops"],
)
def test_columns_that_are_read_once_have_the_sketch(cuda_task_for: TaskFor, payload: Payload, known: bool) -> None:
    assert (STRIDED in space_of(cuda_task_for(payload), FIXED_CUDA).sketches) == known


def compiled(task: Task, pool: CompilerPool, decisions: dict[str, Value]) -> CompileResult:
    space = space_of(task, FIXED_CUDA)
    trace, _ = space.run(STRIDED, Recorder(decisions, on_illegal=OnIllegal.REJECT))
    ((_, result),) = pool.compile(task.source, [space.script(trace)])
    return result


SHARED: list[dict[str, Value]] = [
    {"lanes": 1, "vector": 1, "repeats": 1},
    {"lanes": 2, "vector": 2, "repeats": 4},
    {"lanes": 4, "vector": 4, "repeats": 8},
    {"lanes": 8, "vector": 1, "repeats": 2},
    {"lanes": 16, "vector": 2, "repeats": 8},
]
"""From no lane beside another in a row, with 32 subgroups, to 16, with two."""


def numbers(*shape: int) -> NDArray[np.float32]:
    """Return small whole numbers, whose sums are exact."""
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("decisions", SHARED, ids=lambda each: f"{each['lanes']} lanes")
def test_a_vector_times_a_matrix_is_right(
    cuda_task_for: TaskFor, cuda_pool: CompilerPool, decisions: dict[str, Value]
) -> None:
    result = compiled(cuda_task_for(vecmat(COLUMNS, ROWS)), cuda_pool, decisions)
    vector, matrix, product = numbers(ROWS), numbers(ROWS, COLUMNS), np.full(COLUMNS, np.nan, np.float32)
    assert_right(result, [vector, matrix, product], vector @ matrix)


@pytest.mark.parametrize("decisions", SHARED, ids=lambda each: f"{each['lanes']} lanes")
def test_sums_of_the_columns_of_matrices_are_right(
    cuda_task_for: TaskFor, cuda_pool: CompilerPool, decisions: dict[str, Value]
) -> None:
    result = compiled(cuda_task_for(reduced((BATCHES, ROWS, COLUMNS), (1,))), cuda_pool, decisions)
    matrices, sums = numbers(BATCHES, ROWS, COLUMNS), np.full((BATCHES, COLUMNS), np.nan, np.float32)
    assert_right(result, [matrices, sums], matrices.sum(axis=1))


def test_more_subgroups_than_lanes_along_the_reduction_leave_out_sums(
    cuda_task_for: TaskFor, cuda_pool: CompilerPool
) -> None:
    """IREE compiles such a configuration without a word: hence as many subgroups as lanes."""
    task = cuda_task_for(vecmat(COLUMNS, ROWS))
    trace, _ = space_of(task, FIXED_CUDA).run(STRIDED, Recorder({"lanes": 16, "vector": 1, "repeats": 2}))
    script = space_of(task, FIXED_CUDA).script(trace)
    for ours, more in [
        ("subgroup_basis = [[1, 1, 2]", "subgroup_basis = [[1, 1, 4]"),
        ("size = [64, 1, 1]", "size = [128, 1, 1]"),
    ]:
        assert ours in script
        script = script.replace(ours, more)
    ((_, result),) = cuda_pool.compile(task.source, [script])
    vector, matrix, product = numbers(ROWS), numbers(ROWS, COLUMNS), np.full(COLUMNS, np.nan, np.float32)
    run(result, [vector, matrix, product])
    assert not np.array_equal(product, vector @ matrix)


def run(result: CompileResult, buffers: list[NDArray[Any]]) -> None:
    """Assemble and run the code."""
    assert result.launch is not None, result.failure
    code = ptx_of(result)
    assembled(code, "sm_80")
    run_kernel(read_kernel(code), result.launch, buffers)


def assert_right(result: CompileResult, buffers: list[NDArray[Any]], expected: NDArray[np.float32]) -> None:
    """Run the code and compare its result, the last of the buffers."""
    run(result, buffers)
    np.testing.assert_array_equal(buffers[-1], expected)
