"""The last stages of the scripts for GPUs: from vectorized tensors to buffers, workgroup ids and thread ids."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.module import LoweringModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.tracking.nest import Sharing


class ThreadLowering(LoweringModule):
    """A module that bufferizes, and maps the loops over workgroups and threads to their ids; targets lower the vectors.

    Mapping the threads also takes the function out of IREE's own pipelines and sets the size of a workgroup.
    """

    name: ClassVar[str] = "lowering"

    @abstractmethod
    def lower_on_tensors(self, s: Schedule) -> None:
        """Emit what a target does with vectors before bufferization, where threads share no memory."""

    @abstractmethod
    def lower_on_buffers(self, s: Schedule) -> None:
        """Emit what a target does with the code of a thread, where threads share no memory."""

    @abstractmethod
    def lower_shared(self, s: Schedule, sharing: Sharing) -> None:
        """Emit what a target does with the code of threads that share memory; :func:`distribute_copies` is a part."""

    def lower(self, s: Schedule) -> None:
        """Emit the stages from tensors to buffers and thread ids."""
        s.apply_patterns(*patterns.FOLD_SUBSETS, cse=True)
        if s.sharing is None:
            self.lower_on_tensors(s)
            if s.linear_threads:
                _take_turns(s, s.workgroup_size)
            else:
                _map_threads(s, s.workgroup_size)
            self.lower_on_buffers(s)
        else:
            map_sharing_threads(s, s.workgroup_size)
            self.lower_shared(s, s.sharing)


def map_sharing_threads(s: Schedule, size: Sequence[int]) -> None:
    """Bufferize and map threads that share memory; the shared tiles become buffers whose copies are not distributed.

    Args:
        size: Threads of a workgroup along x, y and z.
    """
    _map_threads(s, size)
    s.raw("transform.iree.hoist_static_alloc")
    for _ in range(2):  # cse makes copies of a buffer to itself, which the second canonicalization removes
        s.apply_patterns(*patterns.FOLD_ALIASES, cse=True)


def _bufferize(s: Schedule) -> None:
    s.raw("transform.iree.eliminate_empty_tensors")
    s.raw("transform.iree.bufferize", attributes={"target_gpu": "unit"}, replaces_function=True)


def _take_turns(s: Schedule, size: Sequence[int]) -> None:
    """Bufferize and let threads take the iterations of linear loops in turns; IREE maps the loops over workgroups."""
    assert s.target.gpu is not None
    _bufferize(s)
    sizes = f"workgroup_size = [{', '.join(map(str, size))}] subgroup_size = {s.target.gpu.subgroup_size}"
    info = f"#iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline {sizes}>"
    s.annotate("translation_info", info)
    s.run_pass("iree-codegen-gpu-distribute-forall")


def _map_threads(s: Schedule, size: Sequence[int]) -> None:
    assert s.target.gpu is not None
    _bufferize(s)
    s.raw("transform.iree.forall_to_workgroup")
    s.raw(
        "transform.iree.map_nested_forall_to_gpu_threads",
        attributes={
            "workgroup_dims": f"array<i64: {', '.join(map(str, size))}>",
            "subgroup_size": f"{s.target.gpu.subgroup_size} : i64",
            "sync_after_distribution": "false",
        },
    )


def distribute_copies(s: Schedule) -> None:
    """Emit the copies into shared memory: each thread of a workgroup copies the same number of vectors."""
    s.raw("transform.iree.gpu_distribute_shared_memory_copy")
    s.apply_patterns(*patterns.FOLD_ALIASES, cse=True)


def hoist_accumulators(s: Schedule) -> None:
    """Emit the motion of accumulators out of the loop over the reduction: from their buffer to registers."""
    s.apply_patterns("canonicalization", cse=True)
    s.raw("transform.iree.apply_licm")
    s.raw("transform.structured.hoist_redundant_vector_transfers", replaces_function=True)


def forward_accumulators(s: Schedule) -> None:
    """Emit what gives a fill to the hoisted accumulators, and these to the epilogues, without a buffer in between."""
    s.run_pass("lower-affine")  # equal places in a buffer get equal indices
    s.apply_patterns("canonicalization", cse=True)
    s.raw("transform.memref.erase_dead_alloc_and_stores")
