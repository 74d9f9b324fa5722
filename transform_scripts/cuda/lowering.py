"""The last stages of every CUDA script: from vectorized tensors to accumulators in registers, thread by thread."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.transform_scripts.gpu.lowering import ThreadLowering
from mlir_sched.transform_scripts.schedule import Schedule


class Lowering(ThreadLowering):
    """A module that bufferizes, maps loops to the ids of workgroups and threads, and keeps accumulators in registers.

    IREE itself lowers the vectors to PTX afterwards (``iree-convert-to-nvvm``).
    """

    backends: ClassVar[tuple[str, ...]] = ("cuda",)

    def lower_on_tensors(self, s: Schedule) -> None:
        """Emit nothing: vectors of any shape are lowered by IREE."""

    def lower_on_buffers(self, s: Schedule) -> None:
        """Hoist the reads and writes of accumulators out of the reduction loop."""
        s.apply_patterns("canonicalization", cse=True)
        s.raw("transform.iree.apply_licm")
        s.raw("transform.structured.hoist_redundant_vector_transfers", replaces_function=True)
        s.apply_patterns("canonicalization", cse=True)
