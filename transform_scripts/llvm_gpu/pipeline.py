"""The choice of one of IREE's pipelines for a dispatch on GPUs whose code LLVM generates."""

from __future__ import annotations

from mlir_sched.targets.target import GpuLimits


def translation_info(pipeline: str, threads: int, gpu: GpuLimits) -> str:
    """Return the ``translation_info`` of a function whose workgroups have their threads along x, in MLIR syntax.

    Args:
        pipeline: Name of the pipeline (``#iree_gpu.pipeline``).
        threads: Threads of a workgroup.
        gpu: The limits of the device.
    """
    sizes = f"workgroup_size = [{threads}, 1, 1] subgroup_size = {gpu.subgroup_size}"
    return f"#iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<{pipeline}> {sizes}>"
