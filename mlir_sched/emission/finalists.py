"""The finalists: the best candidates of every task, measured again to choose a script, then once more to report it.

A choice and the figures that are reported for it come from different samples: the best of several noisy medians reads
faster than it is.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TypeAlias

from mlir_sched.compiler import CompileResult, CompilerPool
from mlir_sched.compiler.reasons import reason
from mlir_sched.database.record import Record
from mlir_sched.database.work_cost import WorkKind
from mlir_sched.emission.acceptance import MIN_GAIN, UNDISPUTED, is_disturbed, why_no_gain
from mlir_sched.emission.final_measurement import compile_scripts, measure_compiled
from mlir_sched.errors import IllegalTraceError
from mlir_sched.evaluation.compiled_code import CompiledCode
from mlir_sched.library.library import sequence_symbol
from mlir_sched.outcome import Timing, as_untuned
from mlir_sched.runner import BaselineError, Runner, RunnerOptions
from mlir_sched.runner.checks.rounding import why_sums_differ
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuning.ledger import SHORT_SESSION_S, Ledger
from mlir_sched.tuning.task_search import TaskSearch

FINALISTS = 3
"""Best candidates of a task that may be measured once more at the end."""
NEAR = 0.95
"""A candidate competes with the best one of the search if its interval reaches this share of that one's lower end: the
few samples of a search may be off by some percent more than its intervals say."""
MINOR_SHARE = 0.02
"""Share of the time of all tasks, with the best candidates so far, below which a task is minor."""
NONE_VALID = "no candidate is valid"
_Code: TypeAlias = Callable[[Sequence[tuple[Task, Sequence[str]]]], list[list[CompileResult]]]
"""Returns the code of tasks, untuned and with scripts, as :func:`compile_scripts` does."""


@dataclass(frozen=True)
class Winner:
    """The script that a dispatch is emitted with.

    Attributes:
        script: The script as it has to be in the library; it was measured with another annotation (``symbol``).
        code: Digest of the code that was measured (``CompileResult.code``).
        timing: Its time in a session that took no part in the choice, with the ratio to the untuned code.
        untuned: The untuned code's time in the same session.
        symbol: Name of its sequence in the library.
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
    """The result of the finalists' measurement.

    Attributes:
        winners: The scripts to emit, by task key.
        reasons: Why the other tasks have none, by task key.
    """

    winners: Mapping[str, Winner] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


def choose_finalists(
    searches: Sequence[TaskSearch],
    options: RunnerOptions | None,
    seconds: float = math.inf,
    code: CompiledCode | None = None,
    ledger: Ledger | None = None,
) -> Finalists:
    """Measure the best candidates of every task in a fresh process and keep those that beat the untuned code.

    Tasks that take little of the program's time have one finalist each, which has a short session, only to be reported.
    This comes first, as it shows what it takes; where ``seconds`` may not do for all choices, the last of several tasks
    is treated so at least. Then come the choices, for the tasks of most time first. Once ``seconds`` leave no time for
    one, all further tasks are treated as those that take little. Within limited ``seconds``, the report of a script
    that gains clearly is short, too.

    Args:
        options: How programs are run and timed; None where none is run. Every task then has its best candidate, with
            the times of the search.
        seconds: Seconds that this should take.
        code: Code that the search compiled; only what is missing there is compiled.
        ledger: Counts and predicts the costs; by default a new one.
    """
    if not searches:
        return Finalists()
    entries = [_Entry(sequence_symbol(i, search.task.name), search) for i, search in enumerate(searches)]
    entries.sort(key=lambda entry: entry.search.seconds_per_run(), reverse=True)
    with CompilerPool(searches[0].task.flags, chain_length=options.chain_length if options else 0) as pool:
        compiled = partial(compile_scripts, pool=pool, code=code or CompiledCode())
        if options is None:
            found = _as_searched(_all_from_search(entries, compiled))
        else:
            found = _measured(entries, options, seconds, compiled, ledger or Ledger(options))
    results = {search.task.key: found[search.task.key] for search in searches}
    return Finalists(
        {key: result for key, result in results.items() if isinstance(result, Winner)},
        {key: result for key, result in results.items() if isinstance(result, str)},
    )


@dataclass(frozen=True)
class _Entry:
    """A task with the symbol that its sequence would have in the library."""

    symbol: str
    search: TaskSearch

    @property
    def calls_s(self) -> tuple[float, float]:
        """Seconds per call of the untuned code, and of the fastest code that the search found."""
        history = self.search.history
        return history.untuned.median_s, history.seconds_per_call()


@dataclass(frozen=True)
class _Chosen:
    """The script that won the deciding session, or the best of the search, with all that is needed to measure it again.

    Attributes:
        compiled: The untuned code, then the candidate's.
        next: Rank, in the search, of the candidate that replaces this one if this one fails when repeated; from
            :data:`FINALISTS` on, none does.
    """

    entry: _Entry
    record: Record
    compiled: Sequence[CompileResult]
    next: int = FINALISTS


def _measured(
    entries: Sequence[_Entry], options: RunnerOptions, seconds: float, code: _Code, ledger: Ledger
) -> dict[str, Winner | str]:
    """Return the script of every task, or why it has none, by key: chosen and reported in sessions of a runner.

    Args:
        entries: The tasks, that of most time first.
        options, seconds, ledger: As in :func:`choose_finalists`.
    """
    start, short = time.monotonic(), options.capped(SHORT_SESSION_S)
    least_s = MINOR_SHARE * sum(entry.search.seconds_per_run() for entry in entries)
    major = [entry for entry in entries if entry.search.seconds_per_run() >= least_s]
    if len(major) == len(entries) > 1 and seconds < sum(ledger.chosen_s(*entry.calls_s) for entry in major):
        major.pop()  # it shows what a report takes
    minor, decided = entries[len(major) :], dict[str, _Chosen | str]()
    reported = partial(_reported, code=code, ledger=ledger)
    found = reported(_all_from_search(minor, code), short)
    shown_s = [(time.monotonic() - start) / len(minor)] if minor else []
    reports_s = sum(ledger.report_s(*entry.calls_s, *shown_s) for entry in major)
    with Runner(options) as runner:
        for entry in major:
            longer_s = ledger.longer_report_s(*major[0].calls_s) * (len(_unclear(decided)) + 1)
            end_s = time.monotonic() - start + ledger.choice_s(*entry.calls_s) + longer_s + reports_s
            if end_s >= seconds:
                break
            key = entry.search.task.key
            with ledger.counting(WorkKind.CHOICE, key):
                decided[key] = _decide(entry, code, runner)
    unclear = decided if seconds == math.inf else _unclear(decided)
    clear = {key: choice for key, choice in decided.items() if key not in unclear}
    unchosen = _all_from_search(major[len(decided) :], code)
    return found | reported(unclear, options) | reported({**clear, **unchosen}, short)


def _as_searched(chosen: Mapping[str, _Chosen | str]) -> dict[str, Winner | str]:
    """Return the chosen scripts with the times of the search. A reason in place of a script is kept."""
    found = dict[str, Winner | str]()
    for key, each in chosen.items():
        if isinstance(each, str):
            found[key] = each
        elif each.record.outcome.valid is None:
            found[key] = why_none_valid(each.entry.search.task)
        else:
            found[key] = _winner(each, _timing(each.record), each.entry.search.history.untuned)
    return found


def why_none_valid(task: Task) -> str:
    """Return why no candidate of a task is used, where none is valid."""
    doubt = why_sums_differ([task.dispatch]) if task.dispatch else ""
    return f"{NONE_VALID}, as {doubt}" if doubt else NONE_VALID


def _decide(entry: _Entry, code: _Code, runner: Runner) -> _Chosen | str:
    """Return the fastest of the best candidates of a task, measured once more, or why none is used.

    Nothing is measured again where the search left no choice: no candidate that may gain what a script is worth, or one
    that gains and has no :func:`_rivals`.
    """
    search = entry.search
    records, scripts = _scripts(search, FINALISTS)
    if not records:
        return why_none_valid(search.task)
    timings = list(map(_timing, records))
    if not any(timing.ratio >= 1.0 and timing.ratio_high >= MIN_GAIN for timing in timings):
        return why_no_gain(timings[0])
    compared = [0, *(_rivals(timings) if records[0].outcome.valid is not None else range(1, len(records)))]
    if len(compared) == 1 and isinstance(only := _from_search(entry, code), _Chosen):
        return only
    (compiled,) = code([(search.task, [scripts[rank] for rank in compared])])
    best = _fastest_of(search.task, compiled, runner) if _gains_clearly(records[0]) else None
    if best is None:
        try:
            found = _fastest(search.task, compiled, runner)
        except BaselineError as error:
            return f"the finalists could not be measured: {reason(str(error))}"
        if isinstance(found, str):
            return found
        timing, best = found
        if why := why_no_gain(timing):
            return why
    return _Chosen(entry, records[compared[best]], (compiled[0], compiled[best + 1]))


def _fastest_of(task: Task, compiled: Sequence[CompileResult], runner: Runner) -> int | None:
    """Return the index of the fastest of the scripts, timed in turns with the first of them; None where that fails.

    For scripts that gain clearly: a pair with code that is ten times as slow takes five times as long as a pair of two
    scripts, and says less about which of these is faster.
    """
    try:
        _, results = measure_compiled(task, compiled[1:], range(len(compiled) - 2), runner)
    except BaselineError:
        return None
    ratios = [1.0, *(result.valid.ratio if result.valid else 0.0 for result in results)]
    return ratios.index(max(ratios))


def _fastest(task: Task, compiled: Sequence[CompileResult], runner: Runner) -> tuple[Timing, int] | str:
    """Return the fastest of the scripts in a session with the untuned code, with its index; or why there is none.

    Where the session is too noisy to show that a script is faster which is far faster by its median, another session
    decides about this script.

    Raises:
        BaselineError: The untuned code cannot be compiled or run.
    """
    untuned, results = measure_compiled(task, compiled, range(len(compiled) - 1), runner)
    valid = [(r.valid, index) for index, r in enumerate(results) if r.valid is not None]
    if not valid:
        return f"the finalists failed when repeated: {reason(results[0].why_not_valid)}"
    timing, best = max(valid, key=lambda found: found[0].ratio)
    if is_disturbed(timing, {task.name: as_untuned(untuned)}):
        _, (again,) = measure_compiled(task, compiled, [best], runner)
        timing = again.valid or timing
    return timing, best


def _gains_clearly(record: Record) -> bool:
    """Say whether a candidate is right, and far faster than the untuned code by its whole interval."""
    return record.outcome.valid is not None and record.outcome.valid.ratio_low >= UNDISPUTED


def _rivals(timings: Sequence[Timing]) -> list[int]:
    """Return the ranks of the candidates that may be as fast as the first, the fastest of the search."""
    best, *others = timings
    return [rank for rank, other in enumerate(others, 1) if other.ratio_high >= NEAR * best.ratio_low]


def _from_search(entry: _Entry, code: _Code, rank: int = 0) -> _Chosen | str:
    """Return a candidate of a task, by default the best, as the search measured it, or why it is not used."""
    return _all_from_search([entry], code, rank)[entry.search.task.key]


def _all_from_search(entries: Sequence[_Entry], code: _Code, rank: int = 0) -> dict[str, _Chosen | str]:
    """Return what :func:`_from_search` returns for every task, by key; their code is compiled side by side."""
    reasons, picked = dict[str, str](), list[tuple[_Entry, Record, str]]()
    for entry in entries:
        records, scripts = _scripts(entry.search, rank + 1)
        if len(records) <= rank:
            reasons[entry.search.task.key] = why_none_valid(entry.search.task)
        elif why := why_no_gain(_timing(records[rank])):
            reasons[entry.search.task.key] = why
        else:
            picked.append((entry, records[rank], scripts[rank]))
    compiled = code([(entry.search.task, [script]) for entry, _, script in picked])
    return reasons | {
        entry.search.task.key: _Chosen(entry, record, results, rank + 1)
        for (entry, record, _), results in zip(picked, compiled, strict=True)
    }


def _unclear(decided: Mapping[str, _Chosen | str]) -> dict[str, _Chosen]:
    """Return the chosen scripts whose gain the search does not show clearly, by task key."""
    chosen = {key: choice for key, choice in decided.items() if isinstance(choice, _Chosen)}
    return {key: choice for key, choice in chosen.items() if not _gains_clearly(choice.record)}


def _timing(record: Record) -> Timing:
    """Return the time of a candidate as the search measured it."""
    timing = record.outcome.timing
    assert timing is not None
    return timing


def _reported(
    chosen: Mapping[str, _Chosen | str], options: RunnerOptions, code: _Code, ledger: Ledger
) -> dict[str, Winner | str]:
    """Measure the chosen scripts once more, in a fresh process. A reason in place of a script is kept."""
    found = dict[str, Winner | str]()
    if not chosen:
        return found
    with Runner(options) as runner:
        for key, choice in chosen.items():
            if isinstance(choice, str):
                found[key] = choice
                continue
            with ledger.counting(WorkKind.REPORT, key):
                found[key] = _report(choice, runner, code)
    return found


def _scripts(search: TaskSearch, finalists: int) -> tuple[list[Record], list[str]]:
    """Return the best candidates whose traces the space still allows, and their scripts.

    Where the valid ones are too few, those that lost to others before they were checked in full follow.

    The scripts are printed from the traces, as for the search: a stored script may come from a transform module that
    has changed since.
    """
    found: list[tuple[Record, str]] = []
    for record in chain(search.history.ranked(), search.history.unchecked()):
        if len(found) == finalists:
            break
        if record.trace is not None:
            with suppress(IllegalTraceError):
                found.append((record, search.space.script(record.trace)))
    return [record for record, _ in found], [script for _, script in found]


def _report(choice: _Chosen, runner: Runner, code: _Code) -> Winner | str:
    """Measure a chosen script once more and return it with these figures, or why it is not used after all.

    Where a script fails that no session has chosen, the next best of the search takes its place.
    """
    task = choice.entry.search.task
    try:
        untuned, (result,) = measure_compiled(task, choice.compiled, [0], runner)
    except BaselineError as error:
        return f"the chosen script could not be measured again: {reason(str(error))}"
    if result.valid is None:
        following = _from_search(choice.entry, code, choice.next) if choice.next < FINALISTS else None
        if isinstance(following, _Chosen):
            return _report(following, runner, code)
        return f"the chosen script failed when repeated: {reason(result.why_not_valid)}"
    if result.valid.ratio_high < 1.0:
        return f"the chosen script was slower when measured again: {result.valid.ratio:.2f}x"
    return _winner(choice, result.valid, untuned)


def _winner(choice: _Chosen, timing: Timing, untuned: Timing) -> Winner:
    """Return a chosen script with its times."""
    search, trace = choice.entry.search, choice.record.trace
    assert trace is not None
    return Winner(
        search.task,
        search.space,
        trace,
        search.space.script(trace, choice.entry.symbol),
        choice.compiled[1].code,
        timing,
        untuned,
        choice.entry.symbol,
        choice.record.seed,
    )
