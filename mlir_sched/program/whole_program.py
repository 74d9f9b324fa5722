"""Checks and times whole compiled programs: each of their public functions, called once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir_sched.errors import MlirSchedError
from mlir_sched.outcome import Timing, of_all
from mlir_sched.payload import TensorSpec
from mlir_sched.program.checking.inside import FunctionInside, hidden_types, verified_inside
from mlir_sched.program.checking.stateful_programs import in_two_orders, state_of
from mlir_sched.program.profile import ProgramProfile, merged, profile_program
from mlir_sched.runner import BaselineError, Runner, RunResult, UnverifiableError
from mlir_sched.runner.checks.check import Check, Checks, InputKind
from mlir_sched.runner.checks.numeric_checks import checks_for_model
from mlir_sched.runner.program import Program
from mlir_sched.targets.target import Target
from mlir_sched.tasks import EntryPoint, Model
from mlir_sched.tasks.partly_written import why_unwritten
from mlir_sched.tasks.shown import Recipe


@dataclass(frozen=True)
class CompiledModel:
    """A compiled model and where it runs.

    Attributes:
        local_sync: Whether it runs in the calling thread even when the runner has several threads.
        recipe: How it was compiled; None where a comparison inside of the program is of no use.
    """

    vmfb: bytes
    local_sync: bool = False
    recipe: Recipe | None = None


def measure_programs(
    runner: Runner, model: Model, baseline: CompiledModel, others: Sequence[CompiledModel]
) -> tuple[Timing, tuple[RunResult, ...]]:
    """Check compiled programs of a model against a baseline program, and time them interleaved with it.

    A program's time is that of one call of each public function, one after the other.

    Args:
        baseline: The program that is right by definition.
        others: The programs to judge; a program that fails in any function has a failure.

    Returns:
        The baseline's timing (its ratio is 1) and one result per other program, in their order.

    Raises:
        BaselineError: The baseline cannot serve as a reference.
    """
    measured = [_measure_entry(runner, model, entry, baseline, others) for entry in model.entries]
    names = [f"@{entry.name}: " if len(model.entries) > 1 else "" for entry in model.entries]
    results = tuple(_combined(names, [results[index] for _, results in measured]) for index in range(len(others)))
    return sum_of([timing for timing, _ in measured]), results


def difference(runner: Runner, model: Model, baseline: CompiledModel, other: CompiledModel) -> str:
    """Return how a compiled program fails beside the right one; empty where it does not, or cannot be judged."""
    for entry in model.entries:
        programs = program_of(model, entry, baseline), [program_of(model, entry, other)]
        try:
            (failure,) = runner.check(*programs, checks_of(model, entry))
        except BaselineError:
            continue
        if failure is not None:
            return f"@{entry.name}: {failure.message}" if len(model.entries) > 1 else failure.message
    return ""


def with_cause(message: str, model: Model) -> str:
    """Return why a function cannot serve as a reference, with the cause where IREE's code leaves elements unwritten."""
    cause = why_unwritten(model.tasks)
    return f"{message}; {cause}" if cause else message


def profile(model: Model, vmfb: bytes, target: Target, call_s: float) -> ProgramProfile | None:
    """Return where the time of a compiled model goes, all public functions together; None where IREE has no record.

    Args:
        call_s: About how long a call takes, seconds.
    """
    if not target.clock.profiling:
        return None
    try:
        return merged(
            [
                profile_program(
                    program_of(model, entry, CompiledModel(vmfb)),
                    timed_inputs(checks_of(model, entry)),
                    driver=target.driver,
                    threads=target.cores,
                    call_s=call_s,
                )
                for entry in model.entries
            ]
        )
    except MlirSchedError:
        return None


def sum_of(timings: Sequence[Timing]) -> Timing:
    """Return the timing of functions that are called one after the other.

    Medians add up. The low bound of the sum adds the low bounds of all functions, the high bound their high bounds; the
    bounds of its ratio to the baseline's sum take the bounds of the functions' ratios in the same way. Both intervals
    are at least as wide as a 95 % interval.

    Args:
        timings: One per function, at least one.
    """
    if len(timings) == 1:
        return timings[0]
    baselines_s = [timing.median_s * timing.ratio for timing in timings]

    def ratio(ratios: Sequence[float]) -> float:
        return sum(baselines_s) / sum(s / r for s, r in zip(baselines_s, ratios, strict=True))

    return Timing(
        median_s=sum(timing.median_s for timing in timings),
        low_s=sum(timing.low_s for timing in timings),
        high_s=sum(timing.high_s for timing in timings),
        samples=min(timing.samples for timing in timings),
        ratio=ratio([timing.ratio for timing in timings]),
        ratio_low=ratio([timing.ratio_low for timing in timings]),
        ratio_high=ratio([timing.ratio_high for timing in timings]),
        disturbed=sum(timing.disturbed for timing in timings),
    )


def calls_of(model: Model) -> tuple[tuple[Program, Check], ...]:
    """Return the functions of a model, without their code, each with the check whose inputs are most like a user's."""
    return tuple((program_of(model, entry, CompiledModel(b"")), checks_of(model, entry)[-1]) for entry in model.entries)


def _measure_entry(
    runner: Runner, model: Model, entry: EntryPoint, baseline: CompiledModel, others: Sequence[CompiledModel]
) -> tuple[Timing, tuple[RunResult, ...]]:
    programs = [program_of(model, entry, compiled) for compiled in others]
    silent = model.inside is not None and entry.name in model.inside.functions
    try:
        checks = checks_of(model, entry)
        timing, results = runner.measure(program_of(model, entry, baseline), programs, checks, silent=silent)
        if not silent:
            return timing, results
        recipes = [compiled.recipe for compiled in others]
        return timing, verified_inside(runner, function_inside(model, entry), results, programs, recipes)
    except BaselineError as error:
        message = str(error) if isinstance(error, UnverifiableError) else with_cause(str(error), model)
        raise type(error)(f"@{entry.name}: {message}" if len(model.entries) > 1 else message) from error


def program_of(model: Model, entry: EntryPoint, compiled: CompiledModel) -> Program:
    """Return a function of a compiled model as a program to run."""
    return Program(
        compiled.vmfb,
        entry.name,
        entry.inputs,
        entry.outputs,
        writes_into_arguments=False,
        parameters=model.parameters,
        local_sync=compiled.local_sync,
        state=state_of(model, entry),
    )


def checks_of(model: Model, entry: EntryPoint) -> Checks:
    """Return the checks of a function; only what the user gives counts where the untuned code is wrong."""
    dispatches, given = [task.dispatch for task in model.tasks if task.dispatch], model.given(entry.name)
    ranges = entry.integer_ranges or None
    checks = in_two_orders(
        checks_for_model(entry.outputs, dispatches, integer_ranges=ranges, given=given), model, entry
    )
    if entry.name not in model.untuned_wrong:
        return checks
    return tuple(check for check in checks if check.kind == InputKind.GIVEN)


def timed_inputs(checks: Checks) -> Check:
    """Return the check with the inputs that a program is profiled on: what the user gives, or else the first one."""
    return next((check for check in checks if check.kind == InputKind.GIVEN), checks[0])


def function_inside(model: Model, entry: EntryPoint) -> FunctionInside:
    """Return a function as it is verified inside."""
    assert model.inside is not None
    known = [task.dispatch for task in model.tasks if task.dispatch]
    program = program_of(model, entry, CompiledModel(b""))

    def checks(outputs: tuple[TensorSpec, ...]) -> Checks:
        return checks_of(model, replace(entry, outputs=outputs))

    return FunctionInside(model.path, model.inside, program, checks, hidden_types(known))


def _combined(names: Sequence[str], results: Sequence[RunResult]) -> RunResult:
    """Return the result of a program from the results of its functions: the first failure, or all times together."""
    failure = next((result.failure for result in results if result.failure is not None), None)
    timings = [result.timing for result in results if result.timing is not None]
    if failure is not None:
        return RunResult(None, failure)
    constant = [f"{name}{text}" for name, r in zip(names, results, strict=True) for text in r.constant_outputs]
    verdict = of_all(result.verdict for result in results)
    inside = tuple(name for result in results for name in result.inside)
    unchecked = next((result.unchecked for result in results if result.unchecked), "")
    return RunResult(sum_of(timings), None, tuple(constant), inside, unchecked, verdict=verdict)
