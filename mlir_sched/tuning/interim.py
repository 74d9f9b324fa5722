"""Times of whole programs with their best scripts so far, which decide between variants that are close."""

from collections.abc import Sequence
from pathlib import Path

from mlir_sched.errors import EnvironmentFailureError, MlirSchedError
from mlir_sched.library.library import TunedSequence, sequence_symbol
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.proof import Prover
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.whole_program import CompiledModel, measure_programs
from mlir_sched.runner import BaselineError, Runner, RunnerOptions
from mlir_sched.tuning.task_search import TaskSearch


def interim_times(
    path: Path, programs: Sequence[tuple[BuiltVariant, Sequence[TaskSearch]]], options: RunnerOptions
) -> dict[str, float]:
    """Return the time of every program with its best scripts so far, by variant.

    Returns:
        Times relative to the first program that can be compiled; programs that fail, or compute other results than the
        first one, are missing. A script that is at fault is left out of its program. The times are only a ranking: the
        emitted program is checked against the untuned one.

    Raises:
        EnvironmentFailureError: The machine fails.
    """
    compiled: list[tuple[BuiltVariant, CompiledModel]] = []
    for built, searches in programs:
        try:
            compiled.append((built, _compiled(path, built, searches)))
        except EnvironmentFailureError:
            raise
        except MlirSchedError:
            continue
    if not compiled:
        return {}
    (first, reference), *others = compiled
    with Runner(options) as runner:
        try:
            _, results = measure_programs(runner, first.model, reference, [program for _, program in others])
        except BaselineError:
            return {}
    timed = zip((built for built, _ in others), (result.valid for result in results), strict=True)
    relative = {built.variant.name: 1 / timing.ratio for built, timing in timed if timing is not None}
    return {first.variant.name: 1.0, **relative}


def _compiled(path: Path, built: BuiltVariant, searches: Sequence[TaskSearch]) -> CompiledModel:
    sequences: dict[str, TunedSequence] = {}
    for number, search in enumerate(searches):
        trace, task = search.history.best_trace(), search.task
        if trace is not None:
            symbol = sequence_symbol(number, task.name)
            sequences[task.key] = TunedSequence(symbol, task.source, search.space, trace, dispatch=task.name)
    if not sequences:
        return built.compiled()
    with temporary_folder() as folder:
        return Prover(path, Path(folder)).prove(built, sequences).compiled()
