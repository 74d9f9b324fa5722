"""The long measurements at the end: scripts of one dispatch, and a whole program, against their untuned code.

They raise an EnvironmentFailureError where the machine fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from mlir_sched.compiler import CompileResult, CompilerPool, ModelCompileError
from mlir_sched.errors import EnvironmentFailureError, Failure, FailureClass
from mlir_sched.evaluation.compiled_code import CompiledCode
from mlir_sched.evaluation.outage import is_of_environment
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.program.whole_program import CompiledModel, measure_programs
from mlir_sched.runner import BaselineError, Runner, RunResult
from mlir_sched.runner.checks.numeric_checks import checks_for_task
from mlir_sched.runner.program import program_of_task
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task
from mlir_sched.tuned_folder.result import Loading

T = TypeVar("T")


class ProgramFailedError(ModelCompileError):
    """A compiled program computes other results than the untuned one, or fails.

    Attributes:
        failure: How it fails.
    """

    def __init__(self, failure: Failure) -> None:
        text = f"the emitted program fails its check ({failure.kind}): {failure.message}"
        super().__init__(text, kind=failure.kind)
        self.failure = failure


@dataclass(frozen=True)
class ProgramTimings:
    """A program and its rivals against plain ``iree-compile``.

    Attributes:
        untuned: Timing of plain ``iree-compile``, or of another program that all are compared with.
        emitted: Timing of the program, with its ratio to ``untuned``; its results are right.
        others: Timing of every rival with its ratio to ``untuned``, by name; a rival that is wrong or fails is missing.
        verdict: What the numeric checks say of the program.
        constant_outputs: One sentence for each output that is the same in every check, so that its check says little.
        inside: Dispatches whose results were compared, once per result, as those of the program say nothing.
        lost: Why the figures are those of an earlier session than the last; empty when they are of the last.
        loading: What loading takes; None where that is not known.
        of_deciding_session: Whether the session is the one that decided on the program, which favours its ratio.
    """

    untuned: Timing
    emitted: Timing
    others: Mapping[str, Timing]
    verdict: Verdict
    constant_outputs: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    lost: str = ""
    loading: Loading | None = None
    of_deciding_session: bool = False

    def scaled(self, factor: float) -> ProgramTimings:
        """Return the timings with all ratios multiplied by a factor: the ratio of ``untuned`` to another program."""
        others = {name: timing.scaled(factor) for name, timing in self.others.items()}
        return replace(self, untuned=self.untuned.scaled(factor), emitted=self.emitted.scaled(factor), others=others)


def compile_scripts(
    groups: Sequence[tuple[Task, Sequence[str]]], pool: CompilerPool, code: CompiledCode | None = None
) -> list[list[CompileResult]]:
    """Return, per task, the compiled untuned code and then the scripts, made by all of the pool's workers at once."""
    wanted = [(task, script) for task, scripts in groups for script in (None, *scripts)]
    found = dict((code or CompiledCode()).of(pool, wanted))
    _require_machine(result.failure for result in found.values())
    results = iter([found[index] for index in range(len(wanted))])
    return [[next(results) for _ in (None, *scripts)] for _, scripts in groups]


def measure_compiled(
    task: Task, compiled: Sequence[CompileResult], chosen: Sequence[int], runner: Runner
) -> tuple[Timing, list[RunResult]]:
    """Measure the ``chosen`` scripts of :func:`compile_scripts`, by index, against the untuned code, in a session.

    Raises:
        BaselineError: The untuned code cannot be compiled or run.
    """
    assert task.dispatch is not None
    untuned, *scripts = compiled
    if untuned.vmfb is None:
        raise BaselineError(f"the untuned code of {task.name} cannot be compiled alone: {untuned.failure}")
    programs = {i: program_of_task(task, vmfb) for i in chosen if (vmfb := scripts[i].vmfb) is not None}
    checks = checks_for_task(task)
    timing, measured = runner.measure(program_of_task(task, untuned.vmfb), list(programs.values()), checks)
    _require_machine(result.failure for result in measured)
    by_index = dict(zip(programs, measured, strict=True))
    return timing, [by_index.get(i) or RunResult(None, scripts[i].failure) for i in chosen]


def measure_program(
    runner: Runner,
    model: Model,
    untuned: CompiledModel,
    others: Mapping[str, CompiledModel],
    emitted: CompiledModel,
) -> ProgramTimings:
    """Check and measure a compiled model and its rivals, interleaved with plain ``iree-compile`` or another program.

    Args:
        untuned: The model compiled plainly, or another program whose results are right.

    Raises:
        ProgramFailedError: The emitted program computes other results, or fails.
    """
    timing, (own, *rivals) = measure_programs(runner, model, untuned, [emitted, *others.values()])
    _require_machine([own.failure])
    if own.valid is None:
        raise ProgramFailedError(own.failure or Failure(FailureClass.RUN_ERROR, own.why_not_valid))
    return ProgramTimings(timing, own.valid, _timed(others, rivals), own.verdict, own.constant_outputs, own.inside)


def measure_variants(
    runner: Runner, model: Model, untuned: CompiledModel, variants: Mapping[str, CompiledModel]
) -> tuple[Timing, Mapping[str, Timing]]:
    """Return the timing of plain ``iree-compile`` and, by name, of the compiled variants whose results are right."""
    timing, results = measure_programs(runner, model, untuned, list(variants.values()))
    return timing, _timed(variants, results)


def undisturbed(
    session: Callable[[], T], disturbed: Callable[[T], bool], affords: Callable[[float], bool] = lambda _: True
) -> T:
    """Return what a session finds; where it was disturbed, what a second one finds.

    A session was disturbed, too, where the program failed in a way that may be the machine's, such as a timeout, or
    where the untuned program failed, which had run before.

    Args:
        affords: Says whether there is time for a second session, given the seconds of the first one.
    """
    start = time.monotonic()
    try:
        found = session()
    except ProgramFailedError as error:
        if error.failure.kind.is_lasting or not affords(time.monotonic() - start):
            raise
    except BaselineError:
        if not affords(time.monotonic() - start):
            raise
    else:
        if not disturbed(found) or not affords(time.monotonic() - start):
            return found
    return session()


def _timed(names: Iterable[str], results: Sequence[RunResult]) -> dict[str, Timing]:
    return {name: r.valid for name, r in zip(names, results, strict=True) if r.valid is not None}


def _require_machine(failures: Iterable[Failure | None]) -> None:
    """Raise EnvironmentFailureError where a failure is the machine's: no program may be left out for it."""
    for failure in failures:
        if failure is not None and is_of_environment(failure):
            raise EnvironmentFailureError(str(failure))
