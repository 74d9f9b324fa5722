"""The long measurements at the end: scripts of one dispatch, and a whole program, against their untuned code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir_sched.compiler import CompilerPool, ModelCompileError
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.measurement import Timing
from mlir_sched.runner import BaselineError, Runner, RunResult
from mlir_sched.runner.program import program_of_task
from mlir_sched.runner.rules import rule_for_dispatch
from mlir_sched.task import Task
from mlir_sched.tasks import Model
from mlir_sched.whole_program import measure_programs


@dataclass(frozen=True)
class ProgramTimings:
    """A program and its rivals against plain ``iree-compile``.

    Attributes:
        untuned: Timing of plain ``iree-compile``.
        emitted: Timing of the program, with its ratio to ``untuned``; its numbers are right.
        others: Ratio of every rival to ``untuned``, by name; one that is wrong or fails is missing.
        verified: Whether the program passed every numeric check.
    """

    untuned: Timing
    emitted: Timing
    others: Mapping[str, float]
    verified: bool


def measure_scripts(
    task: Task, scripts: Sequence[str], pool: CompilerPool, runner: Runner
) -> tuple[Timing, list[RunResult]]:
    """Compile and measure stand-alone scripts of one task against its untuned code.

    Returns:
        The untuned code's timing, from the same session, and one result per script.

    Raises:
        BaselineError: The untuned code cannot be compiled or run.
    """
    assert task.dispatch is not None
    compiled = dict(pool.compile(task, [None, *scripts]))
    programs = {
        index: program_of_task(task, result.vmfb)
        for index, result in sorted(compiled.items())
        if result.vmfb is not None
    }
    if 0 not in programs:
        raise BaselineError(f"the untuned code of {task.name} cannot be compiled alone: {compiled[0].failure}")
    order = [index for index in programs if index]
    rule = rule_for_dispatch(task.dispatch)
    untuned, measured = runner.measure(programs[0], [programs[index] for index in order], rule)
    by_index = dict(zip(order, measured, strict=True))
    return untuned, [by_index.get(i) or RunResult(None, compiled[i].failure) for i in range(1, len(scripts) + 1)]


def measure_program(
    runner: Runner, model: Model, untuned: bytes, others: Mapping[str, bytes], emitted: bytes
) -> ProgramTimings:
    """Check and measure a compiled model and its rivals, interleaved with plain ``iree-compile``.

    Args:
        runner: Runs them.
        model: The model.
        untuned: The model compiled plainly.
        others: Rivals by name.
        emitted: The program to judge.

    Raises:
        ModelCompileError: The program computes other numbers, or fails.
    """
    timing, results = measure_programs(runner, model, untuned, [*others.values(), emitted])
    *rivals, own = results
    if own.timing is None:
        failure = own.failure or Failure(FailureClass.RUN_ERROR, "it was not timed")
        raise ModelCompileError(f"the emitted program fails its check ({failure.kind}): {failure.message}")
    ratios = {name: r.timing.ratio for name, r in zip(others, rivals, strict=True) if r.timing is not None}
    return ProgramTimings(timing, own.timing, ratios, own.verified)
