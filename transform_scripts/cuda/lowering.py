"""The last stages of every CUDA script: from vectorized tensors to accumulators in registers, thread by thread."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.transform_scripts.gpu.lowering import (
    ThreadLowering,
    distribute_copies,
    forward_accumulators,
    hoist_accumulators,
)
from mlir_sched.transform_scripts.gpu.shared_memory import COPY_BYTES, fits
from mlir_sched.transform_scripts.nest import Sharing, points
from mlir_sched.transform_scripts.schedule import Schedule

REGISTER_FILE = 65536
"""Registers of 4 bytes that the threads of a workgroup share. Source: CUDA C++ Programming Guide, compute
capabilities 5.0 to 9.0."""
MAX_PIPELINE_DEPTH = 4
ROW_PADDING = COPY_BYTES
"""Bytes behind each row of a shared tile that keep a column out of a single memory bank, and copies aligned."""


class Lowering(ThreadLowering):
    """A module that bufferizes, maps loops to the ids of workgroups and threads, and keeps accumulators in registers.

    Draws, for threads that share memory, whether rows of shared tiles are padded (``bank_conflicts``), and how many
    steps of the reduction are copied ahead (``pipeline_depth``; 1 copies every step when the step before is done). IREE
    itself lowers the vectors to PTX afterwards (``iree-convert-to-nvvm``).
    """

    backends: ClassVar[tuple[str, ...]] = ("cuda",)

    def lower_on_tensors(self, s: Schedule) -> None:
        """Turn accumulators that are tensors in the reduction loops into vectors; IREE lowers vectors of any shape."""
        s.run_pass("iree-codegen-optimize-tensor-insert-extract-slices")
        s.apply_patterns("scf.for_loop_canonicalization", "canonicalization", cse=True)

    def lower_on_buffers(self, s: Schedule) -> None:
        """Hoist the reads and writes of accumulators out of the reduction loop."""
        hoist_accumulators(s)
        s.apply_patterns("canonicalization", cse=True)

    def lower_shared(self, s: Schedule, sharing: Sharing) -> None:
        """Hoist accumulators, then distribute the copies and, if so drawn, let them run ahead of the computation."""
        require_register_file(s)
        padding = sample_padding(s, sharing)
        depth = sample_depth(s, sharing, padding)
        hoist_accumulators(s)
        forward_accumulators(s)
        copy_ahead(s, depth)
        pipeline(s, depth)
        pad_rows(s, padding)


def require_register_file(s: Schedule) -> None:
    """Refuse workgroups whose results take more than half of the registers of a multiprocessor: PTX of them spills.

    Raises:
        IllegalTraceError: They take more.
    """
    root = s.dispatch.root
    workgroup = s.levels_of(root)[0].tile
    held = points(root, workgroup) * max(1, root.element_bytes // 4)
    s.require(held <= REGISTER_FILE // 2, f"{held} results in registers > {REGISTER_FILE // 2}")


def sample_padding(s: Schedule, sharing: Sharing) -> int:
    """Draw whether rows of shared tiles are padded, where there is room; return the bytes of padding."""
    if not fits(s, sharing, padding=ROW_PADDING):
        return 0
    return 0 if s.sample_choice("bank_conflicts", ("kept", "avoided")) == "kept" else ROW_PADDING


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


def pad_rows(s: Schedule, padding: int) -> None:
    """Emit ``padding`` bytes behind each row of the shared tiles.

    Comes behind :func:`pipeline`: IREE 3.13 ends with SIGSEGV where it pipelines padded copies.
    """
    if padding:
        bits = {"padding_size_bits": f"{8 * padding} : i64"}
        s.raw("transform.iree.reduce_shared_memory_bank_conflicts", attributes=bits)
        s.apply_patterns("memref.fold_memref_alias_ops", "canonicalization", cse=True)


def pipeline(s: Schedule, depth: int) -> None:
    """Emit asynchronous copies, and the order in which a step's copies are issued ``depth`` steps ahead."""
    s.apply_patterns("vector.cast_away_vector_leading_one_dim", "canonicalization", cse=True)  # only flat copies count
    if depth > 1:
        s.raw("transform.iree.create_async_groups")
        s.apply_patterns("canonicalization", cse=True)
        attributes = {"depth": f"{int(depth)} : i64"}
        s.raw_on_all("transform.iree.pipeline_shared_memory_copies", "scf.for", attributes)
        s.apply_patterns("canonicalization", cse=True)
