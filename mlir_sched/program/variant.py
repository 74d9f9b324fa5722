"""Program variants: one model under other compiler flags, or rewritten, without any script for a dispatch.

A variant decides which dispatches a model has, so a variant is chosen for the program as a whole: variants with
different dispatches are tuned (``tuning/variant_search.py``), and all variants compete with the tuned program at the
end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlir_sched.library import RewriteScript
from mlir_sched.library.library import build_library
from mlir_sched.outcome import Timing
from mlir_sched.program.plan import Plan
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model
from mlir_sched.tasks.shown import Recipe


@dataclass(frozen=True)
class Variant:
    """A plan for one program.

    Attributes:
        plan: How the program is compiled and run.
        rewrite: The script of the repair of the program, if it needs one, and of the plan's rewrites; None for neither.
    """

    plan: Plan
    rewrite: RewriteScript | None = None

    @property
    def name(self) -> str:
        """Unique among the variants of a program."""
        return self.plan.name

    @property
    def library(self) -> str:
        """Text of the library with its script, and without a script of any dispatch; empty where it has none."""
        return build_library([], self.rewrite) if self.rewrite else ""

    def in_calling_thread(self) -> Variant:
        """Return the same variant on IREE's ``local-sync``."""
        return replace(self, plan=self.plan.in_calling_thread())


@dataclass(frozen=True)
class BuiltVariant:
    """A variant of one model, compiled and timed without scripts.

    Attributes:
        variant: Its plan and script.
        model: The model's dispatches under its flags and :data:`~mlir_sched.tasks.TASK_FLAGS`.
        vmfb: The program compiled with ``untuned_flags``: for the default variant what a plain ``iree-compile`` makes,
            unless the program is repaired.
        timing: Time of the program, with its ratio to the default variant; None when it is wrong or fails. In a run
            without a device, an estimate.
        untuned_flags: Compiler flags of the program as long as no dispatch has a script.
        profile: Where its time goes without scripts; None when IREE records no profile.
        build_s: Seconds that compiling it and taking it apart took.
    """

    variant: Variant
    model: Model
    vmfb: bytes
    timing: Timing | None
    untuned_flags: tuple[str, ...]
    profile: ProgramProfile | None = None
    build_s: float = 0.0

    @property
    def was_run(self) -> bool:
        """Whether its time was measured, and not estimated by a model."""
        return self.timing is not None and not self.timing.is_estimated

    @property
    def measured(self) -> Timing:
        """The time of a variant that was timed."""
        assert self.timing is not None
        return self.timing

    def compiled(self) -> CompiledModel:
        """Return the program without scripts as a compiled model.

        A rewrite makes other dispatches, whose results cannot be compared with those of the untuned program.
        """
        recipe = None if self.variant.plan.rewrites else Recipe(self.untuned_flags, self.variant.library)
        return CompiledModel(self.vmfb, self.variant.plan.local_sync, recipe)

    def on(self, target: Target) -> Target:
        """Return the target of a run with the number of threads that the variant runs on."""
        return replace(target, cores=self.variant.plan.threads(target.cores))
