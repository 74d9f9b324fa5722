"""The last stages of every Vulkan script: from vectorized tensors to SPIR-V's vectors on buffers, thread by thread."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.common.thread_distribution import workgroup_size
from mlir_sched.transform_scripts.module import LoweringModule
from mlir_sched.transform_scripts.schedule import Schedule


class Lowering(LoweringModule):
    """A module that lowers vectors, bufferizes, and maps the loops over workgroups and threads to their ids.

    The vectors are lowered before bufferization, so that accumulators become ``vector<4>`` values of the reduction
    loop. Mapping the threads also takes the function out of IREE's own pipelines and sets the size of a workgroup.

    Source: IREE ``SPIRV/Passes.cpp`` (addSPIRVBaseVectorizePassPipeline), measured in IREE 3.13 on lavapipe.
    """

    name: ClassVar[str] = "lowering"
    backends: ClassVar[tuple[str, ...]] = ("vulkan-spirv",)

    def lower(self, s: Schedule) -> None:
        """Emit the stages from tensors to buffers, lowered vectors and thread ids."""
        assert s.target.gpu is not None
        s.apply_patterns(*patterns.FOLD_SUBSETS, cse=True)
        s.run_pass("iree-spirv-initial-vector-lowering")
        s.run_pass("iree-codegen-optimize-tensor-insert-extract-slices")
        s.run_pass("iree-spirv-final-vector-lowering")
        s.apply_patterns("scf.for_loop_canonicalization", "canonicalization", cse=True)
        s.raw("transform.iree.eliminate_empty_tensors")
        s.raw("transform.iree.bufferize", attributes={"target_gpu": "unit"}, replaces_function=True)
        s.raw("transform.iree.forall_to_workgroup")
        size = workgroup_size(s.dispatch.root, s.levels_of(s.dispatch.root))
        s.raw(
            "transform.iree.map_nested_forall_to_gpu_threads",
            attributes={
                "workgroup_dims": f"array<i64: {', '.join(map(str, size))}>",
                "subgroup_size": f"{s.target.gpu.subgroup_size} : i64",
                "sync_after_distribution": "false",
            },
        )
        for _ in range(2):  # cse leaves copies of a buffer to itself, which the second canonicalization removes
            s.apply_patterns("canonicalization", cse=True)
