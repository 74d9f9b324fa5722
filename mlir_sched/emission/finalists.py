"""The finalists: the best candidates of every task, measured again to choose a script, then once more to report it.

A choice and the figures that are reported for it come from different samples: the best of several noisy medians reads
faster than it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlir_sched.compiler import CompileResult, CompilerPool
from mlir_sched.database.record import Record
from mlir_sched.emission.decisions import why_no_gain
from mlir_sched.emission.final_measurement import compile_scripts, measure_compiled
from mlir_sched.errors import IllegalTraceError
from mlir_sched.outcome import Timing
from mlir_sched.runner import BaselineError, Runner, RunnerOptions
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuning.task_search import TaskSearch

FINALISTS = 3
"""Best candidates per task that are measured once more."""


@dataclass(frozen=True)
class Winner:
    """The script that a dispatch is emitted with.

    Attributes:
        task: The task.
        space: Its design space.
        trace: The decisions.
        script: The script as it was compiled and measured; the script in the library has to be the same.
        code: Digest of the code that was measured (``CompileResult.code``).
        timing: Its time in a session that took no part in the choice, with the ratio to the untuned code.
        untuned: The untuned code's time in the same session.
        symbol: Name of its strategy in the library.
        seed: Seed of the run that found it.
    """

    task: Task
    space: DesignSpace
    trace: Trace
    script: str
    code: str
    timing: Timing
    untuned: Timing
    symbol: str
    seed: int


@dataclass(frozen=True)
class Finalists:
    """Winners by task key, and why the other tasks have none."""

    winners: Mapping[str, Winner] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def choose_finalists(searches: Sequence[TaskSearch], options: RunnerOptions) -> Finalists:
    """Measure the best candidates of every task in a fresh process and keep those that beat the untuned code."""
    if not searches:
        return Finalists()
    winners: dict[str, Winner] = {}
    notes: dict[str, str] = {}
    chosen: list[_Choice] = []
    with CompilerPool(searches[0].task.flags) as pool:
        with Runner(options) as runner:
            for number, search in enumerate(searches):
                found = _choose(search, strategy_symbol(number, search.task.name), pool, runner)
                if isinstance(found, str):
                    notes[search.task.key] = found
                else:
                    chosen.append(found)
        with Runner(options) as runner:
            for choice in chosen:
                winner = _report(choice, runner)
                if isinstance(winner, str):
                    notes[choice.search.task.key] = winner
                else:
                    winners[choice.search.task.key] = winner
    return Finalists(winners, notes)


def strategy_symbol(number: int, name: str) -> str:
    """Return the symbol of a dispatch's strategy: ``tuned_<number>_<what it computes>``."""
    what = re.sub(r"^.*?_?dispatch_\d+_", "", name)
    return f"tuned_{number}_{re.sub(r'[^A-Za-z0-9_]', '_', what)}"


@dataclass(frozen=True)
class _Choice:
    """The script that won the deciding session, with all that is needed to measure it again."""

    search: TaskSearch
    record: Record
    script: str
    symbol: str
    compiled: Sequence[CompileResult]


def _choose(search: TaskSearch, symbol: str, pool: CompilerPool, runner: Runner) -> _Choice | str:
    """Return the fastest of the best candidates of a task, or why none is used.

    The scripts are printed from the traces: a stored script may come from a transform module that has changed since.
    """
    records, scripts = _scripts(search, symbol)
    if not records:
        return "no candidate is valid"
    compiled = compile_scripts(search.task, scripts, pool)
    try:
        _, results = measure_compiled(search.task, compiled, range(len(scripts)), runner)
    except BaselineError as error:
        return f"the finalists could not be measured: {error}"
    valid = [(r.timing, index) for index, r in enumerate(results) if r.timing is not None]
    if not valid:
        return "the finalists failed when repeated"
    timing, best = max(valid, key=lambda found: found[0].ratio)
    if note := why_no_gain(timing):
        return note
    return _Choice(search, records[best], scripts[best], symbol, (compiled[0], compiled[best + 1]))


def _scripts(search: TaskSearch, symbol: str) -> tuple[list[Record], list[str]]:
    """Return the best candidates whose traces the space still allows, and their scripts."""
    found: list[tuple[Record, str]] = []
    for record in search.ranked():
        if record.trace is not None and len(found) < FINALISTS:
            try:
                found.append((record, search.space.script(record.trace, symbol)))
            except IllegalTraceError:
                continue
    return [record for record, _ in found], [script for _, script in found]


def _report(choice: _Choice, runner: Runner) -> Winner | str:
    """Measure a chosen script once more and return it with these figures, or why it is not used after all."""
    task = choice.search.task
    try:
        untuned, (result,) = measure_compiled(task, choice.compiled, [0], runner)
    except BaselineError as error:
        return f"the chosen script could not be measured again: {error}"
    if result.timing is None:
        return f"the chosen script failed when repeated: {result.failure}"
    if result.timing.ratio_high < 1.0:
        return f"the chosen script was slower when measured again: {result.timing.ratio:.2f}x"
    trace = choice.record.trace
    assert trace is not None
    code = choice.compiled[1].code
    return Winner(
        task, choice.search.space, trace, choice.script, code, result.timing, untuned, choice.symbol, choice.record.seed
    )
