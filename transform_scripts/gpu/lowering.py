"""The last stages of the scripts for GPUs: from vectorized tensors to buffers, workgroup ids and thread ids."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.gpu.thread_distribution import workgroup_size
from mlir_sched.transform_scripts.module import LoweringModule
from mlir_sched.transform_scripts.schedule import Schedule


class ThreadLowering(LoweringModule):
    """A module that bufferizes, and maps the loops over workgroups and threads to their ids; targets lower the vectors.

    Mapping the threads also takes the function out of IREE's own pipelines and sets the size of a workgroup.
    """

    name: ClassVar[str] = "lowering"

    @abstractmethod
    def lower_on_tensors(self, s: Schedule) -> None:
        """Emit what a target does with vectors before bufferization."""

    @abstractmethod
    def lower_on_buffers(self, s: Schedule) -> None:
        """Emit what a target does with the code of a thread."""

    def lower(self, s: Schedule) -> None:
        """Emit the stages from tensors to buffers and thread ids."""
        assert s.target.gpu is not None
        s.apply_patterns(*patterns.FOLD_SUBSETS, cse=True)
        self.lower_on_tensors(s)
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
        self.lower_on_buffers(s)
