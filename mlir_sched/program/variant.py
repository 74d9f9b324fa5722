"""Program variants: one model under other compiler flags, or rewritten, without any script for a dispatch.

A variant decides which dispatches a model has, so a variant is chosen for the program as a whole: variants with
different dispatches are tuned (``tuning/variant_search.py``), and all variants compete with the tuned program at the
end.
"""

from __future__ import annotations

from collections.abc import Sequence
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

CLEARLY_SLOWER = 2.0
"""A variant that took this many times the expected time of the emitted program is not measured again."""


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

    @property
    def call_s(self) -> float:
        """Seconds per call of a variant that was timed."""
        return self.measured.median_s

    def compiled(self) -> CompiledModel:
        """Return the program without scripts as a compiled model.

        A rewrite makes other dispatches, whose results cannot be compared with those of the untuned program.
        """
        recipe = None if self.variant.plan.rewrites else Recipe(self.untuned_flags, self.variant.library)
        return CompiledModel(self.vmfb, self.variant.plan.local_sync, recipe)

    def on(self, target: Target) -> Target:
        """Return the target of a run with the number of threads that the variant runs on."""
        return replace(target, cores=self.variant.plan.threads(target.cores))


@dataclass(frozen=True)
class Rivals:
    """What the emitted program is measured beside in the session that decides.

    A session takes samples of all programs in pairs with one of them: two other programs are told apart only as far as
    the noise of this one allows. It is therefore the fastest untuned variant, which is the hardest to beat.

    Attributes:
        reference: The variant that the emitted program and the others are compared with: the fastest one, or the
            default where all variants are clearly slower than the emitted program.
        others: The other variants that may be as fast as the emitted program, the fastest first.
        slow: The variants that are clearly slower and not measured again.
        undisputed: Whether all variants are clearly slower.
    """

    reference: BuiltVariant
    others: tuple[BuiltVariant, ...]
    slow: tuple[BuiltVariant, ...]
    undisputed: bool = False

    @staticmethod
    def of(built: Sequence[BuiltVariant], tuned_s: float) -> Rivals:
        """Return the rivals of a program that is expected to take ``tuned_s`` seconds per call.

        Args:
            built: The variants, the default first; those that were not timed do not compete.
            tuned_s: Seconds per call of the program with scripts.
        """
        timed = [each for each in built if each.timing is not None]
        near = [each for each in timed if each.call_s <= CLEARLY_SLOWER * tuned_s]
        near.sort(key=lambda each: each.call_s)
        reference = near[0] if near else timed[0]
        others = tuple(variant for variant in near if variant is not reference)
        slow = tuple(v for v in timed if v is not reference and v not in others)
        return Rivals(reference, others, slow, undisputed=not near)

    def against(self, reference: BuiltVariant) -> Rivals:
        """Return the rivals with another reference; the former one, which cannot serve, is none of them."""
        others, slow = ([v for v in variants if v is not reference] for variants in (self.others, self.slow))
        return Rivals(reference, tuple(others), tuple(slow))

    def at_most(self, count: int) -> Rivals:
        """Return the rivals with the ``count`` fastest of the others; the rest counts as slow."""
        return replace(self, others=self.others[:count], slow=(*self.slow, *self.others[count:]))
