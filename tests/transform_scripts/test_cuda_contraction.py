"""Contractions on CUDA through shared memory: the PTX that they become, and what the rules refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from fixed_targets import FIXED_CUDA
from payloads import Payload, matmul
from ptx import assembled, opcodes, ptx_of

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import IllegalTraceError
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder, Trace

TaskFor = Callable[[str | Payload], Task]
SHARED = "shared_contraction"
SQUARE = matmul(256, 256, 256)
PIPELINED: dict[str, Value] = {
    "tile_rows": (64, 8),
    "tile_columns": (64, 8),
    "reduction_step": 16,
    "bank_conflicts": "avoided",
    "pipeline_depth": 3,
}
SAMPLES = 6
"""Random candidates per payload that are compiled and assembled."""
MAX_SPILLED_BYTES = 512
"""Spilled bytes that a legal candidate may have."""


def space_of(task: Task, space: Space | None = None) -> DesignSpace:
    assert task.dispatch is not None
    return DesignSpace(space or Space.default(FIXED_CUDA), task.dispatch, FIXED_CUDA)


def trace_of(space: DesignSpace, sketch: str, values: Mapping[str, Value]) -> Trace:
    return space.run(sketch, Recorder(dict(values), np.random.default_rng(0), OnIllegal.REJECT))[0]


@pytest.fixture(scope="module")
def pool() -> CompilerPool:
    return CompilerPool(FIXED_CUDA.flags)


@pytest.mark.parametrize(
    ("payload", "has"),
    [
        ("matmul", True),
        ("matmul_f16", True),
        ("batch_matmul_bt", True),
        ("bias_gelu", True),
        ("two_epilogues", True),
        ("matmul_i8", False),
        ("matmul_accumulating", False),
        ("vecmat", False),
        ("matvec", False),
    ],
)
def test_products_of_two_matrices_share_memory(cuda_task_for: TaskFor, payload: str, has: bool) -> None:
    assert (SHARED in space_of(cuda_task_for(payload)).sketches) is has


REFUSED: dict[str, tuple[Payload, dict[str, Value], str]] = {
    "uneven copies": (SQUARE, {"tile_rows": (4, 1), "tile_columns": (256, 4)}, "256 threads copy no step"),
    "copies without vectors": (SQUARE, {**PIPELINED, "reduction_step": 2}, "reduction_step"),
    "too many threads": (
        SQUARE,
        {"tile_rows": (256, 4), "tile_columns": (256, 4)},
        "4096 threads per workgroup > 1024",
    ),
    "too little memory": (
        matmul(256, 256, 512),
        {**PIPELINED, "tile_rows": (256, 4), "tile_columns": (16, 4), "reduction_step": 64},
        "pipeline_depth",
    ),
    "too many results": (
        SQUARE,
        {"tile_rows": (256, 8), "tile_columns": (256, 8), "reduction_step": 16},
        "65536 results in registers > 32768",
    ),
    "as many buffers as steps": (matmul(256, 256, 48), PIPELINED, "pipeline_depth"),
    "a pipeline of a single step": (matmul(256, 256, 16), {**PIPELINED, "pipeline_depth": 2}, "pipeline_depth"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rule_refuses(cuda_task_for: TaskFor, name: str) -> None:
    payload, values, rule = REFUSED[name]
    space = space_of(cuda_task_for(payload))
    with pytest.raises(IllegalTraceError, match=rule):
        trace_of(space, SHARED, values)


def test_golden_script(cuda_task_for: TaskFor, golden: Callable[[str, str], None]) -> None:
    space = space_of(cuda_task_for("bias_gelu"))
    values: dict[str, Value] = {
        "tile_rows": (16, 4),
        "tile_columns": (32, 4),
        "reduction_step": 16,
        "bank_conflicts": "avoided",
        "pipeline_depth": 2,
    }
    trace = trace_of(space, SHARED, values)
    script = space.script(trace)
    golden("cuda/shared_contraction", script)
    assert space.trace_of(script) == trace


def test_copies_ahead_are_asynchronous(cuda_task_for: TaskFor, pool: CompilerPool) -> None:
    """A pipeline of three steps waits until two groups of copies are left, and keeps accumulators in registers."""
    task = cuda_task_for(SQUARE)
    space = space_of(task)
    traces = [trace_of(space, SHARED, PIPELINED), trace_of(space, SHARED, {**PIPELINED, "pipeline_depth": 1})]
    results = dict(pool.compile(task.source, [space.script(trace) for trace in traces]))
    pipelined, plain = (ptx_of(results[index]) for index in (0, 1))
    assert opcodes(pipelined)["cp.async.cg.shared.global"] > 0
    assert "cp.async.wait_group \t2;" in pipelined
    assert "cp.async" not in plain
    assert opcodes(plain)["st.shared.v4.b32"] > 0
    for text in (pipelined, plain):
        assert opcodes(text)["fma.rn.f32"] == 8 * 8 * 16
        assert opcodes(text)["st.global.v4.b32"] == 8 * 8 / 4, "the fill is stored, too"


@pytest.mark.parametrize(
    "payload", [SQUARE, matmul(128, 96, 64, "f16", "f32"), "batch_matmul_bt", "bias_gelu", "two_epilogues"]
)
def test_random_candidates_assemble(
    cuda_task_for: TaskFor, pool: CompilerPool, tmp_path: Path, payload: str | Payload
) -> None:
    task = cuda_task_for(payload)
    space, rng = space_of(task), np.random.default_rng(5)
    traces = list({space.sample(rng, SHARED): None for _ in range(SAMPLES)})
    for index, result in pool.compile(task.source, [space.script(trace) for trace in traces]):
        values = dict(traces[index].values)
        assert result.failure is None, (values, result.failure)
        text = ptx_of(result)
        assert ("cp.async" in text) == (values["pipeline_depth"] > 1), values
        for architecture in ("sm_80", "sm_90"):
            assert assembled(text, architecture, tmp_path).spilled_bytes <= MAX_SPILLED_BYTES, values
