"""Instructions that a script asks for and its code does not have."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from fixed_targets import FIXED_CUDA
from gpu_model.kernels import ptx

from mlir_sched.compiler import CompileResult
from mlir_sched.evaluation import gpu_times
from mlir_sched.evaluation.gpu_times import why_dropped
from mlir_sched.gpu_model.ptx import PtxError, read_kernel
from mlir_sched.tasks.task import Task

COPIES, PRODUCTS = (
    "transform.iree.create_async_groups %0",
    "mma_kind = #iree_gpu.mma_layout<NV_MMA_SYNC_F32_16x8x16_F16>",
)
COPY, PRODUCT = (
    "\tcp.async.ca.shared.global [%r1], [%rd2], 16;",
    "\tmma.sync.aligned.m16n8k16 {%r1}, {%r2}, {%r3}, {%r4};",
)


@pytest.mark.parametrize(
    ("script", "code", "missing"),
    [
        ("transform.yield", "", ""),
        (COPIES, COPY, ""),
        (COPIES, PRODUCT, "cp.async"),
        (PRODUCTS, PRODUCT, ""),
        ("transform.iree.vector.vector_to_mma_conversion %0 {use_mma_sync}", COPY, "mma.sync"),
        (f"{COPIES}\n{PRODUCTS}", "", "cp.async and mma.sync"),
    ],
)
def test_what_is_missing_is_named(script: str, code: str, missing: str) -> None:
    why = why_dropped(script, read_kernel(ptx(code)))
    assert why == (f"the script asks for {missing}, and its code has none" if missing else "")


@pytest.mark.parametrize(("kernels", "why"), [(1, "depends on values"), (2, "2 kernels")])
def test_code_without_a_launch_is_refused_for_what_it_is(
    kernels: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_times, "find_assembler", lambda: Path("ptxas"))
    monkeypatch.setattr(gpu_times, "modelled_device", lambda _: None)
    head, kernel = ptx("").split(".visible")
    result = CompileResult("".join((head, *kernels * [f".visible{kernel}"], "\0")).encode(), None, "", 0.0)
    with pytest.raises(PtxError, match=why):
        gpu_times.GpuTimes(FIXED_CUDA).seconds(cast("Task", None), result)
