"""Instructions that a script asks for and its code does not have."""

from __future__ import annotations

import pytest
from gpu_model.kernels import ptx

from mlir_sched.evaluation.gpu_times import why_dropped
from mlir_sched.gpu_model.ptx import read_kernel

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
