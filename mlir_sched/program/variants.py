"""Program variants: the same model under other compiler flags, or rewritten, without any script for a dispatch.

A variant decides which dispatches a model has, so a variant is chosen for the program as a whole: variants with
different dispatches are tuned (``tuning/variant_search.py``), and all variants compete with the tuned program at the
end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlir_sched.compiler import ModelCompileError, applied_rewrites, compiling
from mlir_sched.compiler.binary_hash import program_hash
from mlir_sched.errors import UserError
from mlir_sched.library.library import build_library
from mlir_sched.library.rewrite_script import RewriteScript
from mlir_sched.outcome import Timing
from mlir_sched.parameters import ParameterFile
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.processes.workers import run_isolated
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variant import Variant
from mlir_sched.program.whole_program import CompiledModel, measure_programs, profile
from mlir_sched.reasons import reason
from mlir_sched.runner import BaselineError, Runner, UnverifiableError
from mlir_sched.space.design_space import Space
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import LOCAL_SYNC, Target
from mlir_sched.tasks import TASK_FLAGS, Model, extract
from mlir_sched.tasks.model import EXTRACTION_LIMITS
from mlir_sched.tasks.task import Task

SHORT_S = 5e-3
"""Seconds per call above which a program is not tried on ``local-sync``: waking the workers is little of that time."""
SAVED_S = 50e-6
"""Most seconds per call that an untuned variant on ``local-sync`` may be slower than the fastest variant and still be
tuned: scripts make the difference smaller, and a call of IREE's task system costs 10 to 30 us anyhow (IREE 3.13, two
workers)."""
NO_TIME = "no time was left to compile it"
"""Why a variant is left out of a run with a short time budget."""
LAYOUT = "channels_last"
"""The variant that is compiled right after the default: it decides the layout of a whole network."""
FAR_FASTER = 2.0
"""Ratio to the default from which :data:`LAYOUT` is the only other variant: the others start from the default's layout
(MobileNet-V2 4.7 and ResNet-50 5.7 times as fast, without scripts; no other variant is above 1.4)."""
SETTLED = "the program is far faster with channels_last"
"""Why a variant is not compiled after that."""
TUNABLE = 0.5
"""Least share of a variant's untuned time in dispatches that can have scripts, below which the variant is not tuned by
time. Under IREE's data tiling most products can have none: a search that spent its time on this variant of BERT-base
ended at 125 ms in place of 104."""
CLEARLY_FASTER = 1.02
"""Ratio above which a variant comes before the default: a gain that noise does not explain."""


@dataclass(frozen=True)
class BuiltVariant:
    """A variant of one model, compiled and timed without scripts.

    Attributes:
        variant: Its name and flags.
        model: The model's dispatches under its flags and :data:`~mlir_sched.tasks.TASK_FLAGS`.
        vmfb: The program compiled with ``untuned_flags``: for the default variant what a plain ``iree-compile`` makes.
        timing: Time of the program, with its ratio to the default variant; None when it is wrong or fails.
        untuned_flags: Compiler flags of the program as long as no dispatch has a script.
        profile: Where its time goes without scripts; None when IREE records no profile.
    """

    variant: Variant
    model: Model
    vmfb: bytes
    timing: Timing | None
    untuned_flags: tuple[str, ...]
    profile: ProgramProfile | None = None

    def compiled(self, vmfb: bytes | None = None) -> CompiledModel:
        """Return the program without scripts, or another program compiled from the variant, as a compiled model."""
        return CompiledModel(self.vmfb if vmfb is None else vmfb, self.variant.local_sync)

    def on(self, target: Target) -> Target:
        """Return the target of a run with the number of threads that the variant runs on."""
        return replace(target, cores=self.variant.threads(target.cores))


class Choice:
    """The choice of the variants that are compiled: all of them, unless the layout of the program settles it."""

    def wants(self, name: str) -> bool:  # noqa: ARG002 - a run by time asks the clock
        """Say whether a variant other than the default is to be compiled."""
        return True

    def settles(self, ratio: float) -> bool:
        """Say whether :data:`LAYOUT`, by its ratio to the default, leaves no other variant a chance."""
        return ratio >= FAR_FASTER


@dataclass(frozen=True)
class BuiltVariants:
    """The variants of one model.

    Attributes:
        built: The variants that IREE compiles, the default first.
        left_out: Why variants that do not compile or that cannot be timed do not compete, by name, in one short
            sentence each.
    """

    built: tuple[BuiltVariant, ...]
    left_out: Mapping[str, str]

    def with_variant(self, built: BuiltVariant, left_out: Mapping[str, str]) -> BuiltVariants:
        """Return the variants with one that a search has composed, unless it is there, and with further reasons."""
        known = built.variant in [each.variant for each in self.built]
        return BuiltVariants(self.built if known else (*self.built, built), {**self.left_out, **left_out})


def build_variants(
    path: Path,
    target: Target,
    runner: Runner,
    parameters: tuple[ParameterFile, ...] = (),
    choice: Choice | None = None,
    *,
    local_sync: bool = True,
) -> BuiltVariants:
    """Compile the model under every variant of the target and time all of them, interleaved with the default.

    The layout of a network comes first: where computing the program channels last makes it far faster, only variants
    that refine this layout follow. A variant that compiles to the same code as an earlier variant is neither in
    ``built`` nor in ``left_out``. On several threads a short program is also timed in the calling thread, under every
    variant.

    Args:
        path: The model.
        target: What to compile for.
        runner: Times the programs.
        parameters: Files with the model's weights.
        choice: Says which variants are compiled; all of them by default, unless the layout settles it.
        local_sync: Whether programs may run in the calling thread when the target has several threads.

    Raises:
        UserError: The default variant cannot be compiled or run.
    """
    choice = choice or Choice()
    default, *flagged = (Variant(name, flags) for name, flags in target_kind(target.name).variants.items())
    rewritten = rewritten_variants(path, target)
    layouts = [variant for variant in rewritten if variant.name == LAYOUT]
    refined = [variant for variant in rewritten if variant.refines == LAYOUT]
    others = [variant for variant in (*flagged, *rewritten) if LAYOUT not in (variant.name, variant.refines)]

    def build(variants: Sequence[Variant]) -> BuiltVariants:
        return _build_all(variants, path, target, parameters, choice)

    first = build_variant(path, target, default, parameters)
    layout = build(layouts)
    timed, failed = time_variants([first, *layout.built], runner) if layout.built else ((first,), {})
    if any(b.timing is not None and choice.settles(b.timing.ratio) for b in timed[1:]):
        rest = build(refined)
        (_, *faster), failed = time_variants([timed[0], *rest.built], runner)
        timed = (*timed, *faster)
        left_out = {**dict.fromkeys((variant.name for variant in others), SETTLED), **rest.left_out, **failed}
    else:
        rest = build([*refined, *others])
        timed, failed = time_variants(_distinct([first, *rest.built, *layout.built]), runner)
        left_out = {**layout.left_out, **rest.left_out, **failed}
    if local_sync and target.cores > 1:
        more, failed = _time_in_calling_thread(timed, runner)
        return BuiltVariants((*timed, *more), left_out | failed)
    return BuiltVariants(timed, left_out)


def _build_all(
    variants: Sequence[Variant],
    path: Path,
    target: Target,
    parameters: tuple[ParameterFile, ...],
    choice: Choice,
) -> BuiltVariants:
    """Compile variants without timing them."""
    built, left_out = list[BuiltVariant](), dict[str, str]()
    for variant in variants:
        if not choice.wants(variant.name):
            left_out[variant.name] = NO_TIME
            continue
        try:
            built.append(build_variant(path, target, variant, parameters))
        except (UserError, ModelCompileError) as error:
            left_out[variant.name] = f"IREE does not compile it: {reason(str(error))}"
    return BuiltVariants(tuple(built), left_out)


def _distinct(built: Sequence[BuiltVariant]) -> list[BuiltVariant]:
    """Return the variants but those that compile to the same code as an earlier one."""
    first = {program_hash(b.vmfb): b.variant.name for b in reversed(built)}
    return [b for b in built if b.variant.name in first.values()]


def rewritten_variants(path: Path, target: Target) -> list[Variant]:
    """Return one variant per rewrite that applies to the program."""
    if not target_kind(target.name).rewrites:
        return []
    job = "mlir_sched.program.rewrites.scripts:rewrite_scripts"
    scripts: tuple[RewriteScript, ...] = run_isolated(
        target.flags, job, str(path), target.cores, limits=EXTRACTION_LIMITS
    )
    return [Variant(script.name, script.flags, script) for script in scripts]


def worth_tuning(built: Sequence[BuiltVariant], space: Space, target: Target) -> list[BuiltVariant]:
    """Return the variants that are worth tuning, the fastest untuned one first.

    Each has a dispatch to tune; of several variants with the same dispatches only the fastest is returned. The default
    comes before variants that are not clearly faster, and is left out where another is far faster. After the first
    variant, rewrites come before other flags: they were found to suit the program, and IREE's own code for the ops that
    they make may be many times slower than a script's. A variant that refines another one takes its place, and its
    rank: without scripts it is slow. A variant in the calling thread is returned only where several threads save it
    :data:`SAVED_S` at most.
    """
    ratios = {b.variant.name: b.timing.ratio for b in built if b.timing is not None}

    def rank(variant: BuiltVariant) -> float:
        known = [ratios[name] for name in (variant.variant.name, variant.variant.refines) if name in ratios]
        ratio = max(known, default=0.0)
        return ratio * CLEARLY_FASTER if variant is built[0] else ratio

    tunable = [b for b in built if b.timing is not None and any(can_tune(t, space, target) for t in b.model.tasks)]
    least_s = min((b.timing.median_s for b in tunable if b.timing), default=0.0)
    tunable = [b for b in tunable if not b.variant.local_sync or (b.timing and b.timing.median_s <= least_s + SAVED_S)]
    refined = {b.variant.refines for b in tunable}
    tunable = [b for b in tunable if b.variant.name not in refined]
    if max(map(rank, tunable), default=0.0) >= FAR_FASTER:
        tunable = [b for b in tunable if b is not built[0]]
    fastest: dict[tuple[object, ...], BuiltVariant] = {}
    for variant in sorted(tunable, key=rank, reverse=True):
        dispatches = tuple((t.dispatch or t.name, t.inputs, t.outputs, t.weight) for t in variant.model.tasks)
        fastest.setdefault((variant.variant.local_sync, *dispatches), variant)
    first, others = [*fastest.values()][:1], [*fastest.values()][1:]
    return [*first, *sorted(others, key=lambda built: built.variant.rewrite is None)]


def profiled(built: BuiltVariant, target: Target) -> BuiltVariant:
    """Return a variant with its profile; unchanged when it has one already or was not timed."""
    if built.profile is not None or built.timing is None:
        return built
    return replace(built, profile=profile(built.model, built.vmfb, built.on(target), built.timing.median_s))


def tunable_share(built: BuiltVariant, space: Space, target: Target) -> float | None:
    """Return the share of a variant's untuned time, 0 to 1, in tunable dispatches; None without a profile."""
    if built.profile is None:
        return None
    shares = built.profile.shares(task.name for task in built.model.tasks)
    return sum(shares[task.name] for task in built.model.tasks if can_tune(task, space, target))


def promising(built: Sequence[BuiltVariant], space: Space, target: Target) -> list[BuiltVariant]:
    """Return the variants but those with less than :data:`TUNABLE` of their time in tunable dispatches.

    Such a variant is about as fast as it can become; it competes at the end as it is. All are returned where no variant
    has more. A variant without a profile counts as tunable.
    """
    shares = [tunable_share(b, space, target) for b in built]
    found = [b for b, share in zip(built, shares, strict=True) if share is None or share >= TUNABLE]
    return found or list(built)


def can_tune(task: Task, space: Space, target: Target) -> bool:
    """Say whether the space has a program for a task."""
    return task.dispatch is not None and bool(space.sketches(task.dispatch, target))


def build_variant(path: Path, target: Target, variant: Variant, parameters: tuple[ParameterFile, ...]) -> BuiltVariant:
    """Compile the model under a variant, and take its dispatches out meanwhile; the variant is not timed."""
    flags, of_tasks = (*target.flags, *variant.flags), (*TASK_FLAGS, *variant.flags)
    text = build_library([], variant.rewrite) if variant.rewrite else ""
    with temporary_folder() as folder:
        library = Path(folder) / "library.mlir" if variant.rewrite else None
        if library is not None:
            library.write_text(text)
        with compiling(path, flags, library) as compiled:
            model = extract(path, target, of_tasks, text, parameters=parameters)
            if library is not None and not applied_rewrites(path, flags, library):
                raise ModelCompileError(f"{path}: the rewrite {variant.name} left no trace in the program")
            return BuiltVariant(variant, model, compiled(), None, flags)


def _time_in_calling_thread(
    timed: Sequence[BuiltVariant], runner: Runner
) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
    """Return the short programs as variants on ``local-sync``, timed, and why some could not be timed, by name."""
    short = [b for b in timed if b.timing is not None and b.timing.median_s <= SHORT_S]
    if timed[0] not in short:
        return (), {}
    (_, *there), failed = time_variants([timed[0], *map(_in_calling_thread, short)], runner)
    return tuple(there), failed


def _in_calling_thread(built: BuiltVariant) -> BuiltVariant:
    variant = replace(built.variant, name=f"{built.variant.name} on {LOCAL_SYNC}", local_sync=True)
    return replace(built, variant=variant)


def time_variants(built: Sequence[BuiltVariant], runner: Runner) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
    """Return the variants with their times, and why some could not be timed, by name."""
    default, *others = built
    try:
        timing, results = measure_programs(runner, default.model, default.compiled(), [b.compiled() for b in others])
    except UnverifiableError as error:
        advice = "let it return what depends on its inputs"
        raise UserError(f"{default.model.path}: nothing is tuned, as {error}; {advice}") from error
    except BaselineError as error:
        raise UserError(f"{default.model.path}: the untuned program cannot be measured: {error}") from error
    timed = [replace(b, timing=result.timing) for b, result in zip(others, results, strict=True)]
    failures = {b.variant.name: result.failure for b, result in zip(others, results, strict=True)}
    failed = {name: f"{f.kind}: {reason(f.message)}" for name, f in failures.items() if f is not None}
    return (replace(default, timing=timing), *timed), failed
