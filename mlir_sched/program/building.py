"""Building of one program variant: it is compiled, its dispatches are taken out, and it is timed beside others."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlir_sched.compiler import ModelCompileError, Shown, compiling
from mlir_sched.compiler.iree_compile import ModelLimitError
from mlir_sched.compiler.reasons import reason
from mlir_sched.compiler.worker_process import JobError
from mlir_sched.errors import UnusablePathError, UserError
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.checking.stateful_programs import require_resettable
from mlir_sched.program.checking.usable_functions import ADVICE, with_usable_functions
from mlir_sched.program.checking.user_values import against_reference, with_values
from mlir_sched.program.profile import TWO_CALLS_S
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.whole_program import measure_programs, profile
from mlir_sched.runner import BaselineError, Runner, UnverifiableError
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS, Model, extract
from mlir_sched.tasks.task import Task
from mlir_sched.tensors.parameters import ParameterFile
from mlir_sched.tensors.values import FunctionValues
from mlir_sched.tuned_folder.names import LIBRARY


def profiled(built: BuiltVariant, target: Target) -> BuiltVariant:
    """Return a variant with its profile; unchanged when it has one already or was not timed."""
    if built.profile is not None or built.timing is None:
        return built
    return replace(built, profile=profile(built.model, built.vmfb, built.on(target), built.timing.median_s))


def profiled_first(built: BuiltVariant, target: Target) -> BuiltVariant:
    """Return a variant that was not timed yet with its profile, which says how long a call takes, too.

    Few calls tell how long a call takes; where calls are short, a second profile has more of them. A variant that has
    its profile is unchanged.
    """
    if built.profile is not None:
        return built
    found = profile(built.model, built.vmfb, built.on(target), TWO_CALLS_S)
    if found is not None and found.total_s < TWO_CALLS_S:
        found = profile(built.model, built.vmfb, built.on(target), found.total_s)
    return replace(built, profile=found)


def first_variant(
    built: BuiltVariant, target: Target, runner: Runner, values: Sequence[FunctionValues] = ()
) -> BuiltVariant:
    """Return the default variant without the public functions that cannot be run or checked if others can.

    Raises:
        UserError: The values do not fit the program's functions, or the program does not compute the same each time.
    """
    require_resettable(built.model, target)
    model, variant = with_values(built.model, values), built.variant
    run = with_usable_functions(runner, model, built.compiled())
    if run.entries != model.entries:
        model = _model_of(Path(model.path), target, variant, model.parameters, run.not_run, variant.library)
    return replace(built, model=against_reference(runner, model.judged_as(run), built.compiled()))


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
        not_run: Public functions that are neither run nor timed, each with the reason.
        known: Tasks of other variants, which are not read again.

    Raises:
        ModelCompileError: IREE does not compile the program, or the variant's rewrite left no trace in it.
        UserError: The file is no program that can be tuned.
    """
    flags, start = (*target.flags, *variant.plan.flags), time.monotonic()
    text = variant.library
    with temporary_folder() as folder:
        library = Path(folder) / LIBRARY if text else None
        if library is not None:
            library.write_text(text)
        shown = (Shown.REWRITES,) if text else ()
        with compiling(path, flags, library, shown, verifies=False) as compiled:  # the other one verifies the program
            model, program = _model_of(path, target, variant, parameters, not_run, text, known), compiled()
            if variant.rewrite and variant.rewrite.mark not in program.rewrites:
                raise ModelCompileError(f"{path}: the rewrite {variant.rewrite.name} left no trace in the program")
            return BuiltVariant(variant, model, program.vmfb, None, flags, build_s=time.monotonic() - start)


@dataclass(frozen=True)
class Attempt:
    """What became of a variant that may not compile.

    Attributes:
        built: The variant; None where it failed.
        why: Why it failed, in one short sentence.
        diagnostics: What IREE says of a program that it does not compile; empty for any other failure, and where time
            or memory is short.
        internal_error: Traceback of an error of mlir-sched itself; empty for any other failure.
        is_limited: Whether time or memory was short.
    """

    built: BuiltVariant | None
    why: str = ""
    internal_error: str = ""
    diagnostics: str = ""
    is_limited: bool = False


def try_variant(
    path: Path, target: Target, variant: Variant, parameters: tuple[ParameterFile, ...], default: Model
) -> Attempt:
    """Build a variant beside the default; arguments as in :func:`build_variant`.

    Args:
        default: The default variant: its dispatches are not read again, and its values are those of all variants.

    Raises:
        UnusablePathError: IREE cannot be told where the variant's library is, which is no fault of the variant.
    """
    try:
        built = build_variant(path, target, variant, parameters, default.not_run, default.tasks)
        return Attempt(replace(built, model=built.model.judged_as(default)))
    except UnusablePathError:
        raise
    except (UserError, ModelCompileError) as error:
        limited = isinstance(error, ModelLimitError)
        return Attempt(None, f"IREE does not compile it: {reason(str(error))}", "", _said(error), limited)
    except JobError as error:
        return Attempt(None, reason(str(error)), f"{variant.name}: {error}")


def _said(error: UserError | ModelCompileError) -> str:
    """Return what the compiler says of a program that it rejects; empty where it needs more than there is."""
    if isinstance(error, ModelCompileError):
        return "" if isinstance(error, ModelLimitError) else error.diagnostics
    return str(error)


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
    flags = (*TASK_FLAGS, *variant.plan.flags)
    return extract(path, target, flags, library, parameters=parameters, not_run=not_run, known=known)


def time_variants(built: Sequence[BuiltVariant], runner: Runner) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
    """Return the variants with their times, and why some could not be timed, by name; all ratios are to the default.

    Args:
        built: The variants. All are checked against the first one and timed in turns with that: the default, or another
            variant that was timed before. A session beside a default of half a second per call takes long.

    Raises:
        UserError: The first variant cannot be run, or its numbers cannot be checked.
    """
    first, *others = built
    try:
        timing, results = measure_programs(runner, first.model, first.compiled(), [b.compiled() for b in others])
    except UnverifiableError as error:
        raise UserError(f"{first.model.path}: nothing is tuned, as {error}; {ADVICE}") from error
    except BaselineError as error:
        raise UserError(f"{first.model.path}: the untuned program cannot be measured: {error}") from error
    ratio = first.timing.ratio if first.timing else 1.0
    timings = [result.valid and result.valid.scaled(ratio) for result in results]
    timed = [replace(b, timing=timing) for b, timing in zip(others, timings, strict=True)]
    failed = {b.variant.name: reason(r.why_not_valid) for b, r in zip(others, results, strict=True) if r.why_not_valid}
    return (replace(first, timing=timing.scaled(ratio)), *timed), failed


def fastest(built: Sequence[BuiltVariant]) -> BuiltVariant:
    """Return the fastest of the variants that were timed, of which there is at least one."""
    return min((b for b in built if b.timing is not None), key=lambda b: b.call_s)
