"""The last stages of scripts for GPUs whose code LLVM generates: accumulators in registers, rows of shared tiles apart.

LLVM takes vectors of any shape, so that nothing has to be done to the vectors before bufferization.
"""

from typing import ClassVar

from mlir_sched.targets.target import GpuLimits
from mlir_sched.transform_scripts.gpu.lowering import (
    ThreadLowering,
    distribute_copies,
    forward_accumulators,
    hoist_accumulators,
)
from mlir_sched.transform_scripts.gpu.shared_memory import COPY_BYTES, fits
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.tracking.nest import Sharing

ROW_PADDING = COPY_BYTES
"""Bytes behind each row of a shared tile that keep a column out of a single memory bank, and copies aligned."""


class Lowering(ThreadLowering):
    """A module that bufferizes, maps loops to the ids of workgroups and threads, and keeps accumulators in registers.

    Draws, for threads that share memory, whether rows of shared tiles are padded (``bank_conflicts``).
    """

    backends: ClassVar[tuple[str, ...]] = ("cuda", "rocm")

    def lower_on_tensors(self, s: Schedule) -> None:
        """Turn accumulators that are tensors in the reduction loops into vectors."""
        s.run_pass("iree-codegen-optimize-tensor-insert-extract-slices")
        s.apply_patterns("scf.for_loop_canonicalization", "canonicalization", cse=True)

    def lower_on_buffers(self, s: Schedule) -> None:
        """Hoist the reads and writes of accumulators out of the reduction loop."""
        hoist_accumulators(s)
        s.apply_patterns("canonicalization", cse=True)

    def lower_shared(self, s: Schedule, sharing: Sharing) -> None:
        """Hoist accumulators and distribute the copies over the threads."""
        padding = sample_padding(s, sharing)
        s.notes["shared_bytes"] = sharing.bytes(padding=padding)
        hoist_accumulators(s)
        forward_accumulators(s)
        distribute_copies(s)
        pad_rows(s, padding)


def sample_padding(s: Schedule, sharing: Sharing) -> int:
    """Draw whether rows of shared tiles are padded, where there is room; return the bytes of padding."""
    if not fits(s, sharing, padding=ROW_PADDING):
        return 0
    return 0 if s.sample_choice("bank_conflicts", ("kept", "avoided")) == "kept" else ROW_PADDING


def pad_rows(s: Schedule, padding: int) -> None:
    """Emit ``padding`` bytes behind each row of the shared tiles."""
    if padding:
        bits = {"padding_size_bits": f"{8 * padding} : i64"}
        s.raw("transform.iree.reduce_shared_memory_bank_conflicts", attributes=bits)
        s.apply_patterns("memref.fold_memref_alias_ops", "canonicalization", cse=True)


def translation_info(pipeline: str, threads: int, gpu: GpuLimits) -> str:
    """Return the ``translation_info`` of a function whose workgroups have their threads along x, in MLIR syntax.

    Args:
        pipeline: Name of the pipeline (``#iree_gpu.pipeline``).
    """
    sizes = f"workgroup_size = [{threads}, 1, 1] subgroup_size = {gpu.subgroup_size}"
    return f"#iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<{pipeline}> {sizes}>"
