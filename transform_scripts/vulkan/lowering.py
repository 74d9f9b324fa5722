"""The last stages of every Vulkan script: from vectorized tensors to SPIR-V's vectors on buffers, thread by thread."""

from typing import ClassVar

from mlir_sched.transform_scripts.gpu.lowering import (
    ThreadLowering,
    distribute_copies,
    forward_accumulators,
    hoist_accumulators,
)
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.tracking.nest import Sharing


class Lowering(ThreadLowering):
    """A module that lowers vectors to those of SPIR-V, bufferizes, and maps loops to the ids of workgroups and threads.

    The vectors are lowered before bufferization, so that accumulators become ``vector<4>`` values of the reduction
    loop; where threads share memory, vectors wait for the copies, and accumulators are hoisted from buffers.

    Source: IREE ``SPIRV/Passes.cpp`` (addSPIRVBaseVectorizePassPipeline), measured in IREE 3.13 on lavapipe.
    """

    backends: ClassVar[tuple[str, ...]] = ("vulkan-spirv",)

    def lower_on_tensors(self, s: Schedule) -> None:
        """Emit the passes that make SPIR-V's vectors of all others."""
        s.run_pass("iree-spirv-initial-vector-lowering")
        s.run_pass("iree-codegen-optimize-tensor-insert-extract-slices")
        s.run_pass("iree-spirv-final-vector-lowering")
        s.apply_patterns("scf.for_loop_canonicalization", "canonicalization", cse=True)

    def lower_on_buffers(self, s: Schedule) -> None:
        """Clean up: cse leaves copies of a buffer to itself, which the second canonicalization removes."""
        for _ in range(2):
            s.apply_patterns("canonicalization", cse=True)

    def lower_shared(self, s: Schedule, sharing: Sharing) -> None:
        """Distribute the copies, and make SPIR-V's vectors in registers of all others."""
        s.notes["shared_bytes"] = sharing.bytes()
        distribute_copies(s)
        s.run_pass("iree-spirv-initial-vector-lowering")
        hoist_accumulators(s)
        forward_accumulators(s)
        s.run_pass("iree-spirv-final-vector-lowering")
        s.apply_patterns("canonicalization", cse=True)
