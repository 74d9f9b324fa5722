"""Convolutions and poolings on CUDA: the PTX that they become, which needs no device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from convolution_payloads import CONVOLUTIONS, POOLINGS, padded_network
from fixed_targets import FIXED_CUDA, space_of
from payload_text import Payload
from ptx import assembled, opcodes, ptx_of

from mlir_sched.compiler import CompilerPool
from mlir_sched.sampling import Value
from mlir_sched.tasks import TASK_FLAGS, extract
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder, Trace

TaskFor = Callable[[str | Payload], Task]
SAMPLED = (
    *("2d_bias_relu", "2d_strided", "2d_nchw", "2d_nchw_strided", "2d_nchw_filters_inside", "3d", "grouped_nhwgc"),
    *("depthwise_strided", "transposed_in_phases", "max_pooling", "max_pooling_nchw_strided"),
)
SAMPLES = 4
"""Random candidates per payload that are compiled and assembled."""
MAX_SPILLED_BYTES = 64
"""Spilled bytes that a legal candidate may have."""


def kernels(pool: CompilerPool, task: Task, traces: list[Trace]) -> list[str]:
    """Return the PTX of every trace."""
    space = space_of(task, FIXED_CUDA)
    return [ptx_of(result) for _, result in pool.compile(task.source, [space.script(trace) for trace in traces])]


@pytest.mark.landing
@pytest.mark.sweep("nightly")
@pytest.mark.parametrize("name", SAMPLED)
def test_random_candidates_assemble_without_memory_for_accumulators(
    cuda_task_for: TaskFor, cuda_pool: CompilerPool, name: str
) -> None:
    """What is not kept in registers would be one buffer for all threads of a workgroup (IREE 3.13)."""
    task = cuda_task_for((CONVOLUTIONS | POOLINGS)[name])
    space, rng = space_of(task, FIXED_CUDA), np.random.default_rng(1)
    for ptx in kernels(cuda_pool, task, [space.sample(rng, "convolution") for _ in range(SAMPLES)]):
        assert ".shared" not in ptx
        assert ".local" not in ptx
        assert assembled(ptx, "sm_90").spilled_bytes <= MAX_SPILLED_BYTES


def test_a_result_written_into_a_padded_tensor_is_stored_once(cuda_pool: CompilerPool, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(padded_network().text)
    _, task, _ = extract(path, FIXED_CUDA, TASK_FLAGS).tasks
    values: dict[str, Value] = {"tile_1": (12, 3), "tile_2": (8, 4), "channels": (4,), "innermost": "channels"}
    (ptx,) = kernels(
        cuda_pool,
        task,
        [space_of(task, FIXED_CUDA).run("convolution", Recorder(values, on_illegal=OnIllegal.REJECT))[0]],
    )
    assert elements_of(ptx, "st.global") == 12
    assert ".shared" not in ptx
    assembled(ptx, "sm_80")


@pytest.mark.parametrize(
    ("name", "values", "results", "step"),
    [
        ("2d_bias_relu", {"tile_1": (16, 4), "tile_2": (32, 8), "channels": (4,), "innermost": "channels"}, 32, 4),
        ("2d_strided", {"tile_2": (13, 13), "tile_3": (32, 4), "channels": (3,)}, 52, 3),
        ("2d_nchw", {"tile_0": (32, 8), "tile_2": (16, 4), "channels": (8,), "innermost": "channels"}, 32, 8),
        ("grouped_nhwgc", {"tile_1": (8, 2), "tile_3": (16, 4), "channels": (8,)}, 8, 8),
    ],
)
def test_accumulators_stay_in_registers(
    cuda_task_for: TaskFor, cuda_pool: CompilerPool, name: str, values: dict[str, Value], results: int, step: int
) -> None:
    """The loop over the sum has the multiply-adds of a thread's tile, and every result is stored once."""
    task = cuda_task_for(CONVOLUTIONS[name])
    recorder = Recorder(values, on_illegal=OnIllegal.REJECT)
    (ptx,) = kernels(cuda_pool, task, [space_of(task, FIXED_CUDA).run("convolution", recorder)[0]])
    assert opcodes(ptx)["fma.rn.f32"] == results * step
    assert elements_of(ptx, "st.global") == results
    assert elements_of(ptx, "ld.global") == elements_of(ptx, "ld.global.nc"), "results are read again"


def elements_of(ptx: str, opcode: str) -> int:
    """Return how many numbers of 4 bytes the loads or stores of a kernel move, scalar ones and vectors."""
    widths = {".v2.": 2, ".v4.": 4}
    found = {name: count for name, count in opcodes(ptx).items() if name.startswith(opcode)}
    assert all(name.endswith("b32") for name in found)
    return sum(count * next((n for part, n in widths.items() if part in name), 1) for name, count in found.items())
