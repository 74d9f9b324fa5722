"""The base of modules for every target whose workgroups have threads."""

from __future__ import annotations

from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.module import TransformModule


class OnThreads(TransformModule):
    """A module for all targets with :class:`~mlir_sched.targets.target.GpuLimits`, whatever their backend."""

    def is_for(self, target: Target) -> bool:
        """Say whether the target's workgroups have threads."""
        return target.gpu is not None

    @property
    def made_for(self) -> str:
        """What the module can be used for, in the user's words."""
        return "GPUs"
