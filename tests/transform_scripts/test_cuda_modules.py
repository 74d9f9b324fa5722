"""The modules on CUDA: which sketches a dispatch gets, and that candidates compile and are assembled without spills."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np
import pytest
from contraction_payloads import matmul
from fixed_targets import FIXED_CUDA, assert_refused, space_of
from folders import ROOT
from payload_text import Payload
from ptx import assembled, ptx_of

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import UserError
from mlir_sched.gpu_model.ptx import read_kernel
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder
from mlir_sched.transform_scripts import llvm_cpu

TaskFor = Callable[[str | Payload], Task]
CONTRACTIONS = (
    *("matmul", "matmul_uneven", "matmul_accumulating", "matmul_i8", "matmul_f16", "matmul_bf16", "batch_matmul_bt"),
    *("vecmat", "matvec", "bias_gelu", "two_epilogues"),
)
ELEMENTWISE = ("elementwise_chain", "transpose", "vector_add_uneven")
REDUCTIONS = ("row_sum", "softmax", "layernorm", "scale_rows", "sum_of_squares")
SAMPLES = 2
EXAMPLE = ROOT / "examples" / "custom_transform_module.py"


@pytest.mark.sweep("nightly")
@pytest.mark.parametrize("name", [*CONTRACTIONS, *ELEMENTWISE, *REDUCTIONS])
def test_random_candidates_are_assembled(cuda_task_for: TaskFor, cuda_pool: CompilerPool, name: str) -> None:
    task, rng = cuda_task_for(name), np.random.default_rng(3)
    space = space_of(task, FIXED_CUDA)
    traces = [space.sample(rng, sketch) for sketch in space.sketches for _ in range(SAMPLES)]
    for index, result in cuda_pool.compile(task.source, [space.script(trace) for trace in traces]):
        assert result.launch is not None, (traces[index].values, result.failure)
        code = ptx_of(result)
        assert read_kernel(code).workgroup_size == result.launch.workgroup_size
        for architecture in ("sm_80", "sm_90"):
            assembled(code, architecture)


def test_accumulators_stay_in_registers(cuda_task_for: TaskFor, cuda_pool: CompilerPool) -> None:
    task = cuda_task_for(matmul(256, 256, 256))
    values: dict[str, Value] = {"tile_0": (64, 4), "tile_1": (64, 8), "reduction_step": (4,)}
    space = space_of(task, FIXED_CUDA)
    trace = space.run("contraction.threads", Recorder(values, on_illegal=OnIllegal.REJECT))[0]
    ((_, result),) = cuda_pool.compile(task.source, [space.script(trace)])
    kernel = read_kernel(ptx_of(result))
    loop = kernel.instructions[min(kernel.labels.values()) :]
    behind = next(i for i, each in enumerate(loop) if each.opcode.startswith("bra"))
    assert not [each for each in loop[:behind] if each.opcode.startswith("st.")]
    assert kernel.count("fma") == 4 * 8 * 4
    assert kernel.count("ld.global.nc.v4") > 0
    assert result.launch is not None
    assert (result.launch.workgroups, result.launch.threads) == (16, 128)


def test_limits_of_a_device_refuse(cuda_task_for: TaskFor) -> None:
    values: dict[str, Value] = {"tile_0": (64, 1), "tile_1": (256, 4), "reduction_step": (1,)}
    assert_refused(
        space_of(cuda_task_for(matmul(256, 256, 64)), FIXED_CUDA),
        "contraction.threads",
        values,
        "4096 threads per workgroup > 1024",
    )


def test_a_module_for_every_target_compiles_for_cuda(cuda_task_for: TaskFor, cuda_pool: CompilerPool) -> None:
    """The example of a user's module, which names no target."""
    spec = importlib.util.spec_from_file_location("example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    task, rng = cuda_task_for(matmul(64, 64, 64)), np.random.default_rng(0)
    assert task.dispatch is not None
    space = DesignSpace(Space.default(FIXED_CUDA).insert(example.OuterProduct()), task.dispatch, FIXED_CUDA)
    (sketch,) = (name for name in space.sketches if name.startswith(example.OuterProduct.name))
    traces = [space.sample(rng, sketch) for _ in range(SAMPLES)]
    for _, result in cuda_pool.compile(task.source, [space.script(trace) for trace in traces]):
        assembled(ptx_of(result), "sm_90")


def test_a_module_with_a_stage_for_the_cpu_is_refused_by_its_stage() -> None:
    with pytest.raises(UserError, match="'reduction' cannot be used for the target cuda: its stage 'tile' is for"):
        Space.default(FIXED_CUDA).led_by([llvm_cpu.ReductionTiling()], FIXED_CUDA)
