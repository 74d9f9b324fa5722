"""Building of program variants: each is compiled, its dispatches are taken out, and all are timed side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from mlir_sched.compiler import ModelCompileError, applied_rewrites, compiling
from mlir_sched.compiler.binary_hash import program_hash
from mlir_sched.compiler.worker_process import JobError
from mlir_sched.errors import MlirSchedError, UserError
from mlir_sched.library.library import build_library
from mlir_sched.parameters import ParameterFile
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.program_space import DEFAULT_ONLY, VARIANT, ProgramSpace, other_algorithms_in
from mlir_sched.program.rewritten import decided_variant, rewriting
from mlir_sched.program.settling import SETTLED, SETTLING, is_far_faster
from mlir_sched.program.variant import LAYOUT, BuiltVariant, Variant
from mlir_sched.program.whole_program import measure_programs, profile, without_failing_functions
from mlir_sched.reasons import reason
from mlir_sched.runner import BaselineError, Runner, UnverifiableError
from mlir_sched.sampling import Value
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS, Model, extract
from mlir_sched.tasks.task import Task
from mlir_sched.tuned_folder.installation import LIBRARY

SHORT_S = 5e-3
"""Seconds per call above which a program is not tried on ``local-sync``: waking the workers is little of that time."""
NO_TIME_TO_COMPILE = "no time was left to compile it"
"""Why a variant is left out of a run with a short time budget."""
EXTENDED = "the run is too short to tune it beside the variant that extends it"
"""Why a variant is left out of a run with a short time budget where another one has all of its rewrite and more."""
CHOSEN_BEFORE = "the run is too short to tune it beside the variant that an earlier run chose"
"""Why a variant is left out of a run with a short time budget where the store knows such a variant."""


@dataclass(frozen=True)
class BuiltVariants:
    """The variants of one model.

    Attributes:
        built: The variants that IREE compiles, the default first.
        left_out: Why variants that do not compile or that cannot be timed do not compete, by name, in one short
            sentence each.
        internal_errors: Tracebacks of mlir-sched's own errors, each of which cost one variant.
        space: The decisions between variants that the program has.
    """

    built: tuple[BuiltVariant, ...]
    left_out: Mapping[str, str]
    internal_errors: tuple[str, ...] = ()
    space: ProgramSpace = DEFAULT_ONLY

    def with_variant(self, built: BuiltVariant, left_out: Mapping[str, str]) -> BuiltVariants:
        """Return the variants with one that a search has composed, unless it is there, and with further reasons."""
        known = built.variant in [each.variant for each in self.built]
        all_built = self.built if known else (*self.built, built)
        return replace(self, built=all_built, left_out={**self.left_out, **left_out})


class Choice:
    """The choice of the variants that are compiled: all of them, unless one of :data:`SETTLING` settles it."""

    def wants(self, name: str) -> bool:  # noqa: ARG002 - a run by time asks the clock
        """Say whether a variant other than the default is to be compiled."""
        return True

    def wants_beside(self, name: str) -> bool:
        """Say whether a variant is to be compiled beside another that extends it, or that an earlier run chose."""
        return self.wants(name)

    def known(self, default: Model) -> Mapping[str, Value]:  # noqa: ARG002 - a run by time asks its store
        """Return what an earlier run decided about this program, or a similar one; empty where nothing is known."""
        return {}

    def settles(self, name: str, *, far_faster: bool) -> bool:  # noqa: ARG002 - a run that goes on has decided it by name
        """Say whether one of :data:`SETTLING` leaves no other variant a chance.

        Args:
            name: Its name.
            far_faster: Whether it does by what was measured now.
        """
        return far_faster

    @property
    def hurried(self) -> bool:
        """Whether how long variants take to be timed decides how many are compiled."""
        return False

    def expects(self, *, call_s: float, build_s: float) -> None:
        """Note the seconds that the default takes per call, 0 at first, and took to be compiled, as others may."""

    def short(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names of the variants that are also timed in the calling thread.

        Args:
            names: Those that take at most :data:`SHORT_S` now.
        """
        return names


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

    The variants of :data:`SETTLING` come first: where one of them makes the program far faster, only variants that
    refine it follow. A variant that compiles to the same code as an earlier variant is neither in ``built`` nor in
    ``left_out``. On several threads a short program is also timed in the calling thread, under every variant.

    Args:
        path: The model.
        target: What to compile for.
        runner: Times the programs.
        parameters: Files with the model's weights.
        choice: Says which variants are compiled; all of them by default, unless one of them settles it.
        local_sync: Whether programs may run in the calling thread when the target has several threads.

    Raises:
        ModelCompileError: IREE does not compile the default variant.
        UserError: The file is no program that can be tuned, or the default variant cannot be run or checked.
    """
    choice = choice or Choice()
    default, *flagged = (Variant(name, flags) for name, flags in target_kind(target.name).variants.items())
    with rewriting(path, target) as found:
        first = _first_variant(path, target, default, parameters, runner)
        rewritten = found()
    early = [variant for variant in rewritten.variants if variant.name in SETTLING]
    variants = (*flagged, *rewritten.variants)
    others = [variant for variant in variants if variant.name not in SETTLING]
    others.sort(key=lambda variant: variant.refines not in SETTLING)

    def build(variants: Sequence[Variant], chosen: Variant | None = None) -> BuiltVariants:
        return _build_all(variants, path, target, parameters, choice, first.model.not_run, chosen)

    choice.expects(call_s=0.0, build_s=first.build_s)
    start = build(early)
    timed: tuple[BuiltVariant, ...] = (first,)
    failed: dict[str, str] = {}
    if start.built or choice.hurried:
        timed, failed = time_variants([first, *start.built], runner)
        has_layout = any(b.variant.name == LAYOUT for b in start.built)
        first = profiled(timed[0], target) if has_layout else timed[0]
        timed = (first, *timed[1:])
        choice.expects(call_s=first.timing.median_s if first.timing else 0.0, build_s=first.build_s)
    ratios = {b.variant.name: b.timing.ratio for b in timed[1:] if b.timing}
    far_faster = {name: is_far_faster(name, ratio, first) for name, ratio in ratios.items()}
    settled = [name for name in far_faster if choice.settles(name, far_faster=far_faster[name])]
    chosen = _chosen_before(choice.known(first.model), path, target, variants, rewritten.shapes)
    wanted = [variant for variant in others if not settled or variant.refines in settled]
    if chosen:
        wanted = [chosen, *(variant for variant in wanted if variant.name not in (chosen.name, chosen.base))]
    rest = build(wanted, chosen)
    skipped = [variant.name for variant in others if settled and variant.refines not in settled]
    if settled:
        (_, *faster), failed_too = time_variants([fastest(timed), *rest.built], runner)
        timed, failed = (*timed, *faster), failed | failed_too
    else:
        timed, failed = _timed_together([first, *rest.built, *start.built], runner)
    left_out = dict.fromkeys(skipped, SETTLED.format(" and ".join(settled)))
    left_out |= {**start.left_out, **rest.left_out, **failed, **rewritten.left_out}
    errors = (*rewritten.internal_errors, *start.internal_errors, *rest.internal_errors)
    if local_sync and target.cores > 1:
        more, failed = _time_in_calling_thread(timed, runner, choice)
        timed, left_out = (*timed, *more), left_out | failed
    space = ProgramSpace(tuple(variant.name for variant in (default, *variants)), rewritten.shapes)
    return BuiltVariants(timed, left_out, errors, space)


def _build_all(
    variants: Sequence[Variant],
    path: Path,
    target: Target,
    parameters: tuple[ParameterFile, ...],
    choice: Choice,
    not_run: Mapping[str, str],
    chosen: Variant | None,
) -> BuiltVariants:
    """Compile variants without timing them: first one that an earlier run chose, then those that extend others."""
    built, left_out, errors = list[BuiltVariant](), dict[str, str](), list[str]()
    extended = {variant.extends for variant in variants}
    for variant in sorted(variants, key=lambda variant: variant.name in extended):
        has_extension = any(b.variant.extends == variant.name for b in built)
        rival = EXTENDED if has_extension else CHOSEN_BEFORE if any(b.variant is chosen for b in built) else ""
        if not (choice.wants_beside(variant.name) if rival else choice.wants(variant.name)):
            left_out[variant.name] = rival or NO_TIME_TO_COMPILE
            continue
        try:
            built.append(build_variant(path, target, variant, parameters, not_run))
        except (UserError, ModelCompileError) as error:
            left_out[variant.name] = f"IREE does not compile it: {reason(str(error))}"
        except JobError as error:
            left_out[variant.name] = reason(str(error))
            errors.append(f"{variant.name}: {error}")
    return BuiltVariants(tuple(built), left_out, tuple(errors))


def _chosen_before(
    decisions: Mapping[str, Value], path: Path, target: Target, variants: Sequence[Variant], shapes: Sequence[str]
) -> Variant | None:
    """Return the variant that an earlier run decided on; None without decisions, or if they do not fit the program.

    Args:
        decisions: The decisions.
        path: The model.
        target: What to compile for.
        variants: The variants without other algorithms, except the default.
        shapes: Shapes of the convolutions that have another algorithm in this program.
    """
    base = next((variant for variant in variants if variant.name == decisions.get(VARIANT)), None)
    if base is None:
        return None
    if others := [shape for shape in other_algorithms_in(decisions) if shape in shapes]:
        with suppress(MlirSchedError):
            return decided_variant(path, target, base.name, others)
    return None if base.name in SETTLING else base  # those of SETTLING are compiled in any case


def _timed_together(built: Sequence[BuiltVariant], runner: Runner) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
    """Return the variants of distinct code, timed in one session, the first of them the default; and what failed."""
    distinct = _distinct(built)
    if built[0].timing is not None and len(distinct) == 1:
        return tuple(distinct), {}
    return time_variants(distinct, runner)


def _distinct(built: Sequence[BuiltVariant]) -> list[BuiltVariant]:
    """Return the variants but those that compile to the same code as an earlier one."""
    first = {program_hash(b.vmfb): b.variant.name for b in reversed(built)}
    return [b for b in built if b.variant.name in first.values()]


def profiled(built: BuiltVariant, target: Target) -> BuiltVariant:
    """Return a variant with its profile; unchanged when it has one already or was not timed."""
    if built.profile is not None or built.timing is None:
        return built
    return replace(built, profile=profile(built.model, built.vmfb, built.on(target), built.timing.median_s))


def _first_variant(
    path: Path, target: Target, variant: Variant, parameters: tuple[ParameterFile, ...], runner: Runner
) -> BuiltVariant:
    """Return the default variant, without the public functions that cannot be run or checked if others can."""
    built = build_variant(path, target, variant, parameters)
    run = without_failing_functions(runner, built.model, built.compiled())
    if run.entries == built.model.entries:
        return built
    return replace(built, model=_model_of(path, target, variant, parameters, run.not_run))


def build_variant(
    path: Path,
    target: Target,
    variant: Variant,
    parameters: tuple[ParameterFile, ...],
    not_run: Mapping[str, str] | None = None,
    known: Sequence[Task] = (),
) -> BuiltVariant:
    """Compile the model under a variant, and take its dispatches out meanwhile; the variant is not timed.

    Args:
        path: The model.
        target: What to compile for.
        variant: The variant.
        parameters: Files with the model's weights.
        not_run: Public functions that are neither run nor timed, each with the reason.
        known: Tasks of other variants, which are not read again.

    Raises:
        ModelCompileError: IREE does not compile the program, or the variant's rewrite left no trace in it.
        UserError: The file is no program that can be tuned.
    """
    flags, start = (*target.flags, *variant.flags), time.monotonic()
    text = build_library([], variant.rewrite) if variant.rewrite else ""
    with temporary_folder() as folder:
        library = Path(folder) / LIBRARY if variant.rewrite else None
        if library is not None:
            library.write_text(text)
        with compiling(path, flags, library) as compiled:
            model = _model_of(path, target, variant, parameters, not_run, text, known)
            if variant.rewrite and variant.rewrite.mark not in applied_rewrites(path, flags, library):
                raise ModelCompileError(f"{path}: the rewrite {variant.name} left no trace in the program")
            vmfb = compiled()
            return BuiltVariant(variant, model, vmfb, None, flags, build_s=time.monotonic() - start)


def _model_of(
    path: Path,
    target: Target,
    variant: Variant,
    parameters: tuple[ParameterFile, ...],
    not_run: Mapping[str, str] | None,
    library: str = "",
    known: Sequence[Task] = (),
) -> Model:
    """Return the dispatches of a variant, which the library's text rewrites if there is one."""
    flags = (*TASK_FLAGS, *variant.flags)
    return extract(path, target, flags, library, parameters=parameters, not_run=not_run, known=known)


def _time_in_calling_thread(
    timed: Sequence[BuiltVariant], runner: Runner, choice: Choice
) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
    """Return the short programs as variants on ``local-sync``, timed, and why some could not be timed, by name."""
    names = choice.short([b.variant.name for b in timed if b.timing is not None and b.timing.median_s <= SHORT_S])
    short = [b for b in timed if b.variant.name in names]
    if timed[0] not in short:
        return (), {}
    (_, *there), failed = time_variants([timed[0], *map(_in_calling_thread, short)], runner)
    return tuple(there), failed


def _in_calling_thread(built: BuiltVariant) -> BuiltVariant:
    return replace(built, variant=built.variant.in_calling_thread())


def time_variants(built: Sequence[BuiltVariant], runner: Runner) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
    """Return the variants with their times, and why some could not be timed, by name; all ratios are to the default.

    Args:
        built: The variants. All are checked against the first one and timed in turns with that: the default, or another
            variant that was timed before. A session beside a default of half a second per call takes long.
        runner: Times the programs.

    Raises:
        UserError: The first variant cannot be run, or its numbers cannot be checked.
    """
    first, *others = built
    try:
        timing, results = measure_programs(runner, first.model, first.compiled(), [b.compiled() for b in others])
    except UnverifiableError as error:
        advice = "let it return what depends on its inputs"
        raise UserError(f"{first.model.path}: nothing is tuned, as {error}; {advice}") from error
    except BaselineError as error:
        raise UserError(f"{first.model.path}: the untuned program cannot be measured: {error}") from error
    ratio = first.timing.ratio if first.timing else 1.0
    timings = [result.timing and result.timing.scaled(ratio) for result in results]
    timed = [replace(b, timing=timing) for b, timing in zip(others, timings, strict=True)]
    failures = {b.variant.name: result.failure for b, result in zip(others, results, strict=True)}
    failed = {name: f"{f.kind}: {reason(f.message)}" for name, f in failures.items() if f is not None}
    return (replace(first, timing=timing.scaled(ratio)), *timed), failed


def fastest(built: Sequence[BuiltVariant]) -> BuiltVariant:
    """Return the fastest of the variants that were timed, of which there is at least one."""
    return min((b for b in built if b.timing is not None), key=lambda b: b.measured.median_s)
