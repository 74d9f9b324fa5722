"""The last stages of every CUDA script: from vectorized tensors to accumulators in registers, thread by thread."""

from typing import ClassVar

from mlir_sched.transform_scripts import llvm_gpu
from mlir_sched.transform_scripts.gpu.lowering import distribute_copies, forward_accumulators, hoist_accumulators
from mlir_sched.transform_scripts.gpu.shared_memory import fits
from mlir_sched.transform_scripts.llvm_gpu.lowering import pad_rows, sample_padding
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.tracking.nest import Sharing, points

REGISTER_FILE = 65536
"""Registers of 4 bytes that the threads of a workgroup share. Source: CUDA C++ Programming Guide, compute
capabilities 5.0 to 9.0."""
MAX_PIPELINE_DEPTH = 4


class Lowering(llvm_gpu.Lowering):
    """What GPUs share whose code LLVM generates, with copies that run ahead of the computation.

    Draws, for threads that share memory, also how many steps of the reduction are copied ahead (``pipeline_depth``; 1
    copies every step when the step before is done). IREE itself lowers the vectors to PTX afterwards
    (``iree-convert-to-nvvm``).
    """

    backends: ClassVar[tuple[str, ...]] = ("cuda",)

    def lower_shared(self, s: Schedule, sharing: Sharing) -> None:
        """Hoist accumulators, then distribute the copies and, if so drawn, let them run ahead of the computation."""
        require_register_file(s)
        padding = sample_padding(s, sharing)
        depth = sample_depth(s, sharing, padding)
        hoist_accumulators(s)
        forward_accumulators(s)
        copy_ahead(s, depth)
        pipeline(s, depth)
        pad_rows(s, padding)  # behind the pipeline: IREE 3.13 ends with SIGSEGV where it pipelines padded copies


def require_register_file(s: Schedule) -> None:
    """Refuse workgroups whose results take more than half of the registers of a multiprocessor: PTX of them spills.

    Raises:
        IllegalTraceError: They take more.
    """
    root = s.dispatch.root
    workgroup = s.levels_of(root)[0].tile
    held = points(root, workgroup) * max(1, root.element_bytes // 4)
    s.require(held <= REGISTER_FILE // 2, f"{held} results in registers > {REGISTER_FILE // 2}")


def sample_depth(s: Schedule, sharing: Sharing, padding: int) -> int:
    """Draw how many steps of the reduction have buffers of their own, of which all but one are copied ahead.

    There are as many buffers as steps under way: with fewer, copies would overwrite what is still read. The loop has
    more steps than that, and is the only one. IREE 3.13 ends with SIGSEGV where it finds no copies to pipeline; copies
    in equal parts of whole vectors always become asynchronous ones.
    """
    depths = [depth for depth in range(2, MAX_PIPELINE_DEPTH + 1) if depth < sharing.steps]
    depth = s.sample_number("pipeline_depth", [1, *(each for each in depths if fits(s, sharing, each, padding))])
    s.notes["shared_bytes"] = sharing.bytes(depth, padding)
    s.notes["pipeline_depth"] = depth
    return depth


def copy_ahead(s: Schedule, depth: int) -> None:
    """Emit one buffer per step that is under way, and the copies."""
    if depth > 1:
        attributes = {"factor": f"{int(depth)} : i64", "skip_analysis": "unit"}
        s.raw_on_all("transform.memref.multibuffer", "memref.alloc", attributes)
    distribute_copies(s)


def pipeline(s: Schedule, depth: int) -> None:
    """Emit asynchronous copies, and the order in which a step's copies are issued ``depth`` steps ahead."""
    s.apply_patterns("vector.cast_away_vector_leading_one_dim", "canonicalization", cse=True)  # only flat copies count
    if depth > 1:
        s.raw("transform.iree.create_async_groups")
        s.apply_patterns("canonicalization", cse=True)
        attributes = {"depth": f"{int(depth)} : i64"}
        s.raw_on_all("transform.iree.pipeline_shared_memory_copies", "scf.for", attributes)
        s.apply_patterns("canonicalization", cse=True)
