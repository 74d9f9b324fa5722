"""Program variants, as data: one model under other compiler flags, or rewritten, without any script for a dispatch.

A variant decides which dispatches a model has, so a variant is chosen for the program as a whole: variants with
different dispatches are tuned (``tuning/variant_search.py``), and all variants compete with the tuned program at the
end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlir_sched.library.rewrite_script import RewriteScript
from mlir_sched.outcome import Timing
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.targets.target import LOCAL_SYNC, Target
from mlir_sched.tasks import Model
from mlir_sched.tasks.shown import Recipe

IN_CALLING_THREAD = f" on {LOCAL_SYNC}"
"""What the names of variants end with that run in the calling thread of a run on several."""


@dataclass(frozen=True)
class Variant:
    """A way to compile and to run a program.

    Attributes:
        name: Unique among the variants of a program.
        flags: Compiler flags.
        rewrite: The rewrite of the program before dispatches are formed; None for no rewrite.
        local_sync: Whether the program runs in the calling thread (IREE's ``local-sync``) even in a run on several
            threads: waking IREE's workers may take longer than the time that they save a short program.
    """

    name: str
    flags: tuple[str, ...]
    rewrite: RewriteScript | None = None
    local_sync: bool = False

    @property
    def refines(self) -> str:
        """Name of the variant that this one improves on once dispatches have scripts; empty for none."""
        return self.rewrite.refines if self.rewrite else ""

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the rewrites that it makes one after the other, other algorithms left out; its name without any."""
        return tuple(self.base.split("+"))

    def extends(self, other: Variant) -> bool:
        """Say whether it has all parts of another variant and more, and both are refinements."""
        return bool(self.refines and other.refines) and {*other.parts} < {*self.parts}

    @property
    def base(self) -> str:
        """Name of the variant without other algorithms, wherever it runs."""
        if self.rewrite is not None:
            return self.rewrite.base or self.rewrite.name
        return self.name.removesuffix(IN_CALLING_THREAD)

    def in_calling_thread(self) -> Variant:
        """Return the same variant on IREE's ``local-sync``."""
        return replace(self, name=f"{self.name}{IN_CALLING_THREAD}", local_sync=True)

    def threads(self, threads: int) -> int:
        """Return the number of threads that the program runs on, given the number of threads of the run."""
        return 1 if self.local_sync else threads


@dataclass(frozen=True)
class BuiltVariant:
    """A variant of one model, compiled and timed without scripts.

    Attributes:
        variant: Its name and flags.
        model: The model's dispatches under its flags and :data:`~mlir_sched.tasks.TASK_FLAGS`.
        vmfb: The program compiled with ``untuned_flags``: for the default variant what a plain ``iree-compile`` makes.
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
        recipe = None if self.variant.rewrite else Recipe(self.untuned_flags)
        return CompiledModel(self.vmfb, self.variant.local_sync, recipe)

    def on(self, target: Target) -> Target:
        """Return the target of a run with the number of threads that the variant runs on."""
        return replace(target, cores=self.variant.threads(target.cores))
