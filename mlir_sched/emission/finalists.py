"""The finalists: the best candidates of every task, measured once more in a fresh process and for longer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlir_sched.compiler import CompilerPool
from mlir_sched.emission.final_measurement import measure_scripts
from mlir_sched.measurement import Timing
from mlir_sched.record import Record
from mlir_sched.runner import BaselineError, Runner, RunnerOptions
from mlir_sched.space import DesignSpace
from mlir_sched.task import Task
from mlir_sched.task_search import TaskSearch
from mlir_sched.trace import Trace

FINALISTS = 3
"""Best candidates per task that are measured once more."""
MIN_GAIN = 1.02
"""Least speed-up worth a script: the place a program is loaded at alone moves its time by up to 1 %."""


@dataclass(frozen=True)
class Winner:
    """The script that a dispatch is emitted with.

    Attributes:
        task: The task.
        space: Its design space.
        trace: The decisions.
        timing: Its time in the final measurement, with the ratio to the untuned code.
        untuned: The untuned code's time in the same measurement.
        symbol: Name of its strategy in the library.
        seed: Seed of the run that found it.
    """

    task: Task
    space: DesignSpace
    trace: Trace
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
    winners: dict[str, Winner] = {}
    notes: dict[str, str] = {}
    if not searches:
        return Finalists()
    flags = searches[0].task.flags
    with CompilerPool(flags) as pool, Runner(options) as runner:
        for number, search in enumerate(searches):
            records = search.ranked()[:FINALISTS]
            best = _measure_again(search.task, records, pool, runner) if records else None
            if best is None:
                notes[search.task.key] = "the finalists failed when repeated" if records else "no candidate is valid"
                continue
            record, timing, untuned = best
            if timing.ratio_low <= 1.0 or timing.ratio < MIN_GAIN:
                notes[search.task.key] = f"no gain: the best script is {timing.ratio:.2f}x as fast as the untuned code"
                continue
            assert record.trace is not None
            symbol = strategy_symbol(number, search.task.name)
            winners[search.task.key] = Winner(
                search.task, search.space, record.trace, timing, untuned, symbol, record.seed
            )
    return Finalists(winners, notes)


def strategy_symbol(number: int, name: str) -> str:
    """Return the symbol of a dispatch's strategy: ``tuned_<number>_<what it computes>``."""
    what = re.sub(r"^.*?_?dispatch_\d+_", "", name)
    return f"tuned_{number}_{re.sub(r'[^A-Za-z0-9_]', '_', what)}"


def _measure_again(
    task: Task, records: Sequence[Record], pool: CompilerPool, runner: Runner
) -> tuple[Record, Timing, Timing] | None:
    """Measure records afresh; return the best by ratio with its timing and the untuned one, or None if all fail."""
    try:
        untuned, results = measure_scripts(task, [record.script for record in records], pool, runner)
    except BaselineError:
        return None
    valid = [(record, r.timing, untuned) for record, r in zip(records, results, strict=True) if r.timing is not None]
    return max(valid, key=lambda found: found[1].ratio, default=None)
