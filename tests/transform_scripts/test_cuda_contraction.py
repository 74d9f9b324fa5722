"""Contractions on CUDA through shared memory and on tensor cores: their PTX, and what the rules refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from contraction_payloads import matmul, mixed_contraction
from fixed_targets import FIXED_CUDA
from payload_text import Payload
from ptx import assembled, opcodes, ptx_of

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import IllegalTraceError
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder, Trace
from mlir_sched.transform_scripts import cuda

TaskFor = Callable[[str | Payload], Task]
SHARED, TENSOR_CORE = "shared_contraction", "tensor_core"
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


HALVES = matmul(256, 256, 256, "f16", "f32")
ATTENTION_SCORES = mixed_contraction({"h": 4, "m": 128, "n": 128, "k": 64}, ("hmk", "hnk", "hmn"), "bf16")
PRODUCT_OVER_HEADS = mixed_contraction({"m": 128, "n": 64, "h": 4, "k": 64}, ("mhk", "hkn", "mn"), "bf16")
WARPS: dict[str, Value] = {
    "tile_rows": (64, 32),
    "tile_columns": (64, 32),
    "reduction_step": 32,
    "bank_conflicts": "avoided",
    "pipeline_depth": 3,
}


def space_of(task: Task, space: Space | None = None) -> DesignSpace:
    assert task.dispatch is not None
    return DesignSpace(space or Space.default(FIXED_CUDA), task.dispatch, FIXED_CUDA)


def trace_of(space: DesignSpace, sketch: str, values: Mapping[str, Value]) -> Trace:
    return space.run(sketch, Recorder(dict(values), np.random.default_rng(0), OnIllegal.REJECT))[0]


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


def test_copies_ahead_are_asynchronous(cuda_task_for: TaskFor, cuda_pool: CompilerPool) -> None:
    """A pipeline of three steps waits until two groups of copies are left, and keeps accumulators in registers."""
    task = cuda_task_for(SQUARE)
    space = space_of(task)
    traces = [trace_of(space, SHARED, PIPELINED), trace_of(space, SHARED, {**PIPELINED, "pipeline_depth": 1})]
    results = dict(cuda_pool.compile(task.source, [space.script(trace) for trace in traces]))
    pipelined, plain = (ptx_of(results[index]) for index in (0, 1))
    assert opcodes(pipelined)["cp.async.cg.shared.global"] > 0
    assert "cp.async.wait_group \t2;" in pipelined
    assert "cp.async" not in plain
    assert opcodes(plain)["st.shared.v4.b32"] > 0
    for text in (pipelined, plain):
        assert opcodes(text)["fma.rn.f32"] == 8 * 8 * 16
        assert opcodes(text)["st.global.v4.b32"] == 8 * 8 / 4, "the fill is stored, too"


@pytest.mark.landing
@pytest.mark.sweep("nightly")
@pytest.mark.parametrize(
    "payload", [SQUARE, matmul(128, 96, 64, "f16", "f32"), "batch_matmul_bt", "bias_gelu", "two_epilogues"]
)
def test_random_candidates_assemble(cuda_task_for: TaskFor, cuda_pool: CompilerPool, payload: str | Payload) -> None:
    task = cuda_task_for(payload)
    space, rng = space_of(task), np.random.default_rng(5)
    traces = list({space.sample(rng, SHARED): None for _ in range(SAMPLES)})
    for index, result in cuda_pool.compile(task.source, [space.script(trace) for trace in traces]):
        values = dict(traces[index].values)
        assert result.failure is None, (values, result.failure)
        text = ptx_of(result)
        assert ("cp.async" in text) == (values["pipeline_depth"] != 1), values
        for architecture in ("sm_80", "sm_90"):
            assert assembled(text, architecture).spilled_bytes <= MAX_SPILLED_BYTES, values


@pytest.mark.parametrize(
    ("payload", "has"),
    [
        (HALVES, True),
        (matmul(256, 256, 256, "f16"), True),
        (matmul(256, 256, 256), False),
        (matmul(256, 256, 40, "f16", "f32"), False),
        (matmul(256, 24, 256, "f16", "f32"), False),
        (matmul(40, 256, 256, "f16", "f32"), False),
        (mixed_contraction({"m": 256, "n": 256, "k": 256}, ("mk", "kn", "mn"), "bf16"), False),
        (ATTENTION_SCORES, False),
        (PRODUCT_OVER_HEADS, False),
    ],
)
def test_products_of_halves_use_tensor_cores(cuda_task_for: TaskFor, payload: Payload, has: bool) -> None:
    assert (TENSOR_CORE in space_of(cuda_task_for(payload)).sketches) is has


WARPS_REFUSED: dict[str, tuple[dict[str, Value], str]] = {
    "too many threads": ({"tile_rows": (256, 16), "tile_columns": (256, 32)}, "4096 threads per workgroup > 1024"),
    "too many in a thread": ({**WARPS, "tile_rows": (128, 128), "tile_columns": (64, 64)}, "256 results per thread"),
    "too many results": ({**WARPS, "tile_rows": (256, 64), "tile_columns": (256, 64)}, "65536 results in registers"),
    "columns of half a load": ({**WARPS, "tile_columns": (64, 8)}, "tile_columns"),
    "half an instruction": ({**WARPS, "reduction_step": 8}, "reduction_step"),
    "as many buffers as steps": ({**WARPS, "reduction_step": 64, "pipeline_depth": 4}, "pipeline_depth"),
}


@pytest.mark.parametrize("name", WARPS_REFUSED)
def test_rule_of_warps_refuses(cuda_task_for: TaskFor, name: str) -> None:
    values, rule = WARPS_REFUSED[name]
    space = space_of(cuda_task_for(HALVES))
    with pytest.raises(IllegalTraceError, match=rule):
        trace_of(space, TENSOR_CORE, values)


def test_golden_script_of_warps(cuda_task_for: TaskFor, golden: Callable[[str, str], None]) -> None:
    space = space_of(cuda_task_for(HALVES))
    trace = trace_of(space, TENSOR_CORE, WARPS)
    script = space.script(trace)
    golden("cuda/tensor_core", script)
    assert space.trace_of(script) == trace


def test_warps_multiply_on_tensor_cores(cuda_task_for: TaskFor, cuda_pool: CompilerPool) -> None:
    """One step of a warp is 2 x 4 results times 2 parts of the reduction; no lane stores the fill."""
    task = cuda_task_for(HALVES)
    space = space_of(task)
    ((_, result),) = cuda_pool.compile(task.source, [space.script(trace_of(space, TENSOR_CORE, WARPS))])
    text = ptx_of(result)
    counted = opcodes(text)
    assert counted["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] == 2 * 4 * 2
    stored = {"st.global.b32": 1, "st.global.v2.b32": 2, "st.global.v4.b32": 4}
    assert sum(numbers * counted[opcode] for opcode, numbers in stored.items()) == 32 * 32 / 32
    assert "cp.async.wait_group \t2;" in text
    assert "ldmatrix" in text
    for architecture in ("sm_80", "sm_90"):
        assert assembled(text, architecture).spilled_bytes == 0


@pytest.mark.landing
@pytest.mark.sweep("nightly")
@pytest.mark.parametrize(
    ("payload", "instruction"),
    [
        (HALVES, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        (matmul(128, 64, 192, "f16"), "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
        (SQUARE, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
    ],
)
def test_random_warps_assemble(
    cuda_task_for: TaskFor, cuda_pool: CompilerPool, payload: Payload, instruction: str
) -> None:
    task = cuda_task_for(payload)
    space = space_of(task, Space.default(FIXED_CUDA).replace(TENSOR_CORE, cuda.TensorCores(tf32=True)))
    rng = np.random.default_rng(5)
    traces = list({space.sample(rng, TENSOR_CORE): None for _ in range(SAMPLES)})
    for index, result in cuda_pool.compile(task.source, [space.script(trace) for trace in traces]):
        values = dict(traces[index].values)
        assert result.failure is None, (values, result.failure)
        text = ptx_of(result)
        assert opcodes(text)[instruction] > 0, values
        assert ("cp.async" in text) == (values["pipeline_depth"] != 1), values
        for architecture in ("sm_80", "sm_90"):
            assert assembled(text, architecture).spilled_bytes <= MAX_SPILLED_BYTES, values


GOLDEN_CONFIGS: dict[str, tuple[str | Payload, dict[str, Value]]] = {
    "lowering_config": (
        "batch_matmul_bt",
        {"tile_1": (32, 4), "tile_2": (48, 4), "reduction_step": (8,), "promote": "yes"},
    ),
    "lowering_config_warps": (HALVES, {"tile_rows": (64, 32), "tile_columns": (64, 32), "reduction_step": 32}),
}


@pytest.mark.parametrize("name", GOLDEN_CONFIGS)
def test_golden_config(cuda_task_for: TaskFor, golden: Callable[[str, str], None], name: str) -> None:
    payload, values = GOLDEN_CONFIGS[name]
    space = space_of(cuda_task_for(payload))
    trace = trace_of(space, "lowering_config", values)
    script = space.script(trace)
    golden(f"cuda/{name}", script)
    assert space.trace_of(script) == trace


CONFIG_REFUSED: list[tuple[Payload, dict[str, Value], str]] = [
    (SQUARE, {"tile_0": (256, 4), "tile_1": (256, 4)}, "4096 threads per workgroup > 1024"),
    (SQUARE, {"tile_0": (64, 8), "tile_1": (64, 16), "reduction_step": (16,)}, "512 unrolled vectors"),
    (HALVES, {"tile_rows": (256, 16), "tile_columns": (256, 32)}, "4096 threads per workgroup > 1024"),
    (HALVES, {**WARPS, "tile_rows": (128, 128), "tile_columns": (64, 64)}, "256 results per thread"),
]


@pytest.mark.parametrize(("payload", "values", "rule"), CONFIG_REFUSED)
def test_rule_of_configs_refuses(cuda_task_for: TaskFor, payload: Payload, values: dict[str, Value], rule: str) -> None:
    space = space_of(cuda_task_for(payload))
    with pytest.raises(IllegalTraceError, match=rule):
        trace_of(space, "lowering_config", values)


CONFIGURED: list[tuple[str | Payload, str]] = [
    (SQUARE, "fma.rn.f32"),
    ("bias_gelu", "fma.rn.f32"),
    ("batch_matmul_bt", "fma.rn.f32"),
    (HALVES, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
    (
        mixed_contraction({"m": 128, "n": 64, "k": 64}, ("mk", "kn", "mn"), "bf16"),
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    ),
    (ATTENTION_SCORES, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
    (PRODUCT_OVER_HEADS, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
]


@pytest.mark.landing
@pytest.mark.sweep("nightly")
@pytest.mark.parametrize(("payload", "instruction"), CONFIGURED)
def test_other_tiles_for_the_compilers_pipeline(
    cuda_task_for: TaskFor, cuda_pool: CompilerPool, payload: str | Payload, instruction: str
) -> None:
    task = cuda_task_for(payload)
    space, rng = space_of(task), np.random.default_rng(5)
    traces = list({space.sample(rng, "lowering_config"): None for _ in range(SAMPLES)})
    for index, result in cuda_pool.compile(task.source, [space.script(trace) for trace in traces]):
        values = dict(traces[index].values)
        assert result.failure is None, (values, result.failure)
        text = ptx_of(result)
        assert opcodes(text)[instruction] > 0, values
        assert assembled(text, "sm_90").spilled_bytes <= MAX_SPILLED_BYTES, values
