"""Candidates compile for processors with other vectors than those of the machine that the tests run on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from convolution_payloads import CONVOLUTIONS
from payload_text import Payload
from payloads import PAYLOADS

from mlir_sched.compiler import CompilerPool
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.transform_scripts.llvm_cpu import LoweringConfig

TaskFor = Callable[[str | Payload], Task]
CPU = "--iree-llvmcpu-target-cpu="
PROCESSORS: Mapping[str, tuple[tuple[str, ...], int, int]] = {
    "SSE2": ((f"{CPU}x86-64",), 16, 16),
    "AVX2": ((f"{CPU}x86-64-v3",), 32, 16),
    "AVX-512": ((f"{CPU}x86-64-v4",), 64, 32),
    "Arm": (("--iree-llvmcpu-target-triple=aarch64-unknown-linux-gnu", f"{CPU}generic"), 16, 32),
}
"""Flags, bytes of a vector register, and number of vector registers."""
NAMES = ("batch_matmul_bt", "bias_gelu", "vecmat", "softmax", "transpose", "product_to_channels_first")
CASES = {name: PAYLOADS[name] for name in NAMES} | {name: CONVOLUTIONS[name] for name in ("2d_padded", "depthwise")}


@pytest.mark.sweep("nightly")
@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("name", CASES)
def test_candidates_compile(
    name: str, processor: str, here: Target, payload_tasks: Callable[[Target], TaskFor]
) -> None:
    flags, vector_bytes, vector_registers = PROCESSORS[processor]
    others = tuple(flag for flag in here.flags if not flag.startswith(CPU))
    target = replace(here, flags=(*others, *flags), vector_bytes=vector_bytes, vector_registers=vector_registers)
    task = payload_tasks(target)(CASES[name])
    assert task.dispatch is not None
    space = DesignSpace(Space.default(target).insert(LoweringConfig()), task.dispatch, target)
    rng = np.random.default_rng(0)
    scripts = [space.script(space.sample(rng, sketch)) for sketch in space.sketches]
    with CompilerPool(task.flags, workers=1) as pool:
        results = dict(pool.compile(task.source, scripts))
    assert [results[number].failure for number in range(len(scripts))] == [None] * len(scripts)
