"""The best candidates of a dispatch are measured again: one session chooses a script, and another one reports it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pytest
from emission_cases import DISPATCH, OPTIONS, SPACE, Nothing, timing
from replayed_run import task_of

from mlir_sched.compiler import CompileResult, CompilerPool
from mlir_sched.compiler.pool import CompileRequest
from mlir_sched.database.record import Origin, Record
from mlir_sched.emission import finalists
from mlir_sched.emission.finalists import FINALISTS, Finalists, choose_finalists
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.evaluation.compiled_code import CompiledCode
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.runner import BaselineError, RunnerOptions, RunResult
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.targets.target import LOCAL
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuning.ledger import SHORT_SESSION_S
from mlir_sched.tuning.task_search import TaskSearch

SEARCHED = timing(2.0, width=0.6)
"""The timing of every candidate during the search: a gain that another session has to confirm."""
CRASH = Failure(FailureClass.RUN_CRASH, "killed by SIGSEGV")


def record(trace: Trace, script: str, searched: Timing = SEARCHED) -> Record:
    outcome = Outcome(searched, None, trace.key, verdict=Verdict.RIGHT)
    return Record("task", "context", trace.key, Origin.SCRIPT, trace, script, outcome, 0, 0)


@dataclass
class Searched:
    """A finished search with two candidates."""

    task: Task
    space: DesignSpace
    records: list[Record]
    untuned: Timing = field(default_factory=lambda: timing(1.0))

    @property
    def history(self) -> Searched:
        return self

    def ranked(self) -> list[Record]:
        return [record for record in self.records if record.outcome.valid is not None]

    def unchecked(self) -> list[Record]:
        return [record for record in self.records if record.outcome.valid is None]

    def seconds_per_call(self) -> float:
        return self.untuned.median_s

    def seconds_per_run(self) -> float:
        return self.task.weight * self.untuned.median_s


@dataclass
class Sessions(Nothing):
    """A pool that compiles nothing, and timings of scripts, session by session, in place of measurements.

    Attributes:
        ratios: Per session what becomes of the scripts, or what is wrong with the code that they are compared with.
        compiled: The scripts that were compiled; their code is named by their place after the untuned code.
        baselines: Per session the code that scripts are compared with; that of the untuned code is -1.
    """

    ratios: Sequence[Sequence[Timing | Failure] | BaselineError]
    compiled: list[str] = field(default_factory=list)
    baselines: list[str] = field(default_factory=list)
    untuned: int = 0
    flags: tuple[str, ...] = ()
    chain_length: int = 0

    def compile_all(self, candidates: Sequence[CompileRequest]) -> Iterator[tuple[int, CompileResult]]:
        place = -1
        for index, candidate in enumerate(candidates):
            place = -1 if candidate.script is None else place + 1
            self.compiled += [] if candidate.script is None else [candidate.script]
            self.untuned += candidate.script is None
            yield index, CompileResult(b"", None, "", 0.1, f"code {place}")

    def measure(
        self, task: Task, compiled: Sequence[CompileResult], chosen: Sequence[int], runner: object
    ) -> tuple[Timing, list[RunResult]]:
        del task, runner
        self.baselines.append(compiled[0].code)
        session, *self.ratios = self.ratios
        if isinstance(session, BaselineError):
            raise session
        found = [session[index] for index in chosen]
        return timing(1.0), [
            RunResult(None, f) if isinstance(f, Failure) else RunResult(f, None, verdict=Verdict.RIGHT) for f in found
        ]


@pytest.fixture
def traces() -> list[Trace]:
    return [SPACE.sample(np.random.default_rng(seed)) for seed in range(2)]


def replace_processes(monkeypatch: pytest.MonkeyPatch, sessions: Sessions) -> list[float]:
    """Have nothing started, and the sessions' timings taken; return the budget of every runner that is opened."""
    budgets: list[float] = []

    class Runner(Nothing):
        def __init__(self, options: RunnerOptions) -> None:
            budgets.append(options.racing.budget_s)

    monkeypatch.setattr(finalists, "CompilerPool", lambda *_, **__: sessions)
    monkeypatch.setattr(finalists, "Runner", Runner)
    monkeypatch.setattr(finalists, "measure_compiled", sessions.measure)
    return budgets


def finalists_of(
    sessions: Sessions, traces: Sequence[Trace], monkeypatch: pytest.MonkeyPatch, searched: Sequence[Timing] = ()
) -> Finalists:
    replace_processes(monkeypatch, sessions)
    timings = searched or [SEARCHED] * len(traces)
    records = [record(t, "the script of an earlier version", timing) for t, timing in zip(traces, timings, strict=True)]
    search = Searched(task_of("matmul", DISPATCH), SPACE, records)
    return choose_finalists([cast("TaskSearch", search)], OPTIONS)


def test_the_best_finalist_is_reported_from_a_session_of_its_own(
    traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions([[timing(1.3), timing(1.4)], [timing(1.25)]])
    (winner,) = finalists_of(sessions, traces, monkeypatch).winners.values()
    assert winner.trace == traces[1]
    assert winner.timing.ratio == 1.25
    assert winner.code == "code 1"


def test_what_is_measured_and_emitted_is_what_the_trace_gives_now(
    traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions([[timing(1.3), timing(1.4)], [timing(1.25)]])
    (winner,) = finalists_of(sessions, traces, monkeypatch).winners.values()
    assert sessions.compiled == [SPACE.script(trace) for trace in traces]
    assert winner.script == SPACE.script(traces[1], winner.symbol)


def test_what_the_search_compiled_is_not_compiled_again(traces: list[Trace], monkeypatch: pytest.MonkeyPatch) -> None:
    sessions, search = Sessions([[timing(1.3), timing(1.4)], [timing(1.25)]]), Sessions([])
    code, task, (first, second) = CompiledCode(), task_of("matmul", DISPATCH), map(SPACE.script, traces)
    replace_processes(monkeypatch, sessions)
    list(code.of(cast("CompilerPool", search), [(task, None), (task, "slower"), (task, second)]))
    searched = cast("TaskSearch", Searched(task, SPACE, [record(trace, SPACE.script(trace)) for trace in traces]))
    (winner,) = choose_finalists([searched], OPTIONS, code=code).winners.values()
    assert (winner.trace, winner.code) == (traces[1], "code 1")
    assert (sessions.compiled, sessions.untuned) == ([first], 0)
    assert choose_finalists([searched], None, code=code).winners[task.key].code == "code 0"
    assert (sessions.compiled, sessions.untuned) == ([first], 0)


def test_what_the_search_showed_to_gain_nothing_is_not_measured_again(
    traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions([])
    monkeypatch.setitem(globals(), "SEARCHED", timing(1.01))
    found = finalists_of(sessions, traces, monkeypatch)
    assert list(found.reasons.values()) == [
        "no gain: the best script is 1.01x (1.01 to 1.01) as fast as the untuned code"
    ]
    assert not sessions.compiled


@pytest.mark.parametrize(("second", "sessions"), [(timing(1.5), 1), (timing(1.93), 2), (timing(1.5, width=0.45), 2)])
def test_only_candidates_that_may_be_the_fastest_are_measured_again(
    second: Timing, sessions: int, traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Sessions([[timing(0.9)], [timing(1.7)]][-sessions:])
    (winner,) = finalists_of(session, traces, monkeypatch, (timing(2.0), second)).winners.values()
    assert (winner.trace, winner.timing.ratio) == (traces[0], 1.7)
    assert len(session.compiled) == sessions
    assert not session.ratios


def test_one_out_of_reach_does_not_hide_the_next_whose_interval_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [SPACE.sample(np.random.default_rng(seed)) for seed in (0, 1, 3)]
    session = Sessions([[timing(1.8), timing(1.9)], [timing(1.85)]])
    searched = (timing(2.0), timing(1.6), timing(1.5, width=0.45))
    (winner,) = finalists_of(session, drawn, monkeypatch, searched).winners.values()
    assert (winner.trace, winner.timing.ratio) == (drawn[2], 1.85)
    assert session.compiled == [SPACE.script(trace) for trace in (drawn[0], drawn[2])]


def test_the_next_best_takes_the_place_of_one_that_fails_when_repeated(
    traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failure(FailureClass.WRONG_RESULT, "on 2 threads: output 0: 3 of 9 elements are too far off")
    session = Sessions([[failing], [timing(1.4)]])
    (winner,) = finalists_of(session, traces, monkeypatch, (timing(2.0), timing(1.5))).winners.values()
    assert (winner.trace, winner.timing.ratio) == (traces[1], 1.4)
    assert session.untuned == 1, "the untuned code is compiled once"


def test_a_candidate_slower_than_the_untuned_code_is_not_measured_again_for_its_wide_interval(
    traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions([])
    monkeypatch.setitem(globals(), "SEARCHED", timing(0.95, width=0.2))
    (note,) = finalists_of(sessions, traces, monkeypatch).reasons.values()
    assert note.startswith("no gain: the best script is 0.95x")
    assert not sessions.compiled


def test_a_task_that_takes_little_of_the_time_has_one_finalist_and_less_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sessions = Sessions([[timing(1.5)], [timing(1.5)] * 3, [timing(1.5)]])
    budgets = replace_processes(monkeypatch, sessions)
    drawn = [SPACE.sample(np.random.default_rng(seed)) for seed in range(4)]
    records = [record(trace, "") for trace in drawn]
    task = task_of("matmul", DISPATCH)
    minor, major = (replace(task, key=key, name=key, weight=weight) for key, weight in (("minor", 1), ("major", 99)))
    searches = [cast("TaskSearch", Searched(one, SPACE, records)) for one in (minor, major)]
    found = choose_finalists(searches, RunnerOptions.final(LOCAL))
    assert list(found.winners) == ["minor", "major"]
    assert budgets == [SHORT_SESSION_S, 1.0, 1.0]
    assert len(sessions.compiled) == FINALISTS + 1
    assert not sessions.ratios


def test_within_limited_time_the_last_task_shows_what_a_report_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice fits in 8 s, as reports take no time here; before any was timed, they would not."""
    budgets, sessions = budgets_of_two_tasks(8.0, [[timing(1.5)], [timing(1.5)] * 3, [timing(1.5)]], monkeypatch)
    assert budgets == [SHORT_SESSION_S, 1.0, 1.0]
    assert not sessions.ratios


def test_with_time_for_all_choices_the_last_task_has_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [[timing(1.5)] * 3] * 2 + [[timing(1.5)]] * 2
    budgets, sessions = budgets_of_two_tasks(100.0, many, monkeypatch)
    assert budgets == [1.0, 1.0]
    assert not sessions.ratios


def budgets_of_two_tasks(
    seconds: float, ratios: list[list[Timing]], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[float], Sessions]:
    """Choose the finalists of two tasks in some seconds, and return the seconds that sessions may sample."""
    sessions = Sessions(ratios)
    budgets = replace_processes(monkeypatch, sessions)
    records = [record(SPACE.sample(np.random.default_rng(seed)), "") for seed in range(4)]
    tasks = (replace(task_of("matmul", DISPATCH), key=key, name=key) for key in ("first", "last"))
    searches = [cast("TaskSearch", Searched(one, SPACE, records)) for one in tasks]
    found = choose_finalists(searches, RunnerOptions.final(LOCAL), seconds=seconds)
    assert list(found.winners) == ["first", "last"]
    return budgets, sessions


@pytest.mark.parametrize(("searched", "seconds"), [(timing(2.0), 100.0), (timing(2.0), math.inf), (SEARCHED, 100.0)])
def test_within_limited_time_a_script_that_gains_clearly_has_a_short_report(
    searched: Timing, seconds: float, traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets = replace_processes(monkeypatch, Sessions([[timing(1.5)] * 2, [timing(1.5)]]))
    searches = Searched(task_of("matmul", DISPATCH), SPACE, [record(trace, "", searched) for trace in traces])
    found = choose_finalists([cast("TaskSearch", searches)], RunnerOptions.final(LOCAL), seconds)
    assert len(found.winners) == 1
    short = searched is not SEARCHED and seconds < math.inf
    assert budgets == [1.0, SHORT_SESSION_S if short else 1.0]


def test_tasks_without_time_for_a_choice_get_what_the_search_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions([[timing(1.5)]])
    replace_processes(monkeypatch, sessions)
    records = [record(SPACE.sample(np.random.default_rng(seed)), "") for seed in range(4)]
    searched = cast("TaskSearch", Searched(task_of("matmul", DISPATCH), SPACE, records))
    found = choose_finalists([searched], RunnerOptions.final(LOCAL), seconds=0.0)
    (winner,) = found.winners.values()
    assert winner.trace == records[0].trace
    assert len(sessions.compiled) == 1
    assert not sessions.ratios


@pytest.mark.parametrize(
    ("decided", "reported", "note"),
    [
        (
            timing(1.04, width=0.05),
            None,
            "no gain: the best script is 1.04x (0.99 to 1.09) as fast as the untuned code",
        ),
        (timing(1.04), timing(0.98), "the chosen script was slower when measured again: 0.98x"),
    ],
)
def test_a_gain_that_is_not_certain_or_not_seen_again_is_none(
    decided: Timing, reported: Timing | None, note: str, traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions([[timing(1.0), decided], [reported] if reported else []])
    found = finalists_of(sessions, traces, monkeypatch)
    assert not found.winners
    assert list(found.reasons.values()) == [note]


@pytest.mark.parametrize(
    ("again", "chosen"), [(timing(1.5), True), (timing(1.5, width=0.5), False), (timing(1.0), False)]
)
def test_another_session_decides_where_noise_hides_a_large_gain(
    again: Timing, chosen: bool, traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy = timing(1.7, width=0.8)
    sessions = Sessions([[timing(1.3, width=0.8), noisy], [timing(0.5), again], [timing(1.4)]])
    found = finalists_of(sessions, traces, monkeypatch)
    assert [winner.trace for winner in found.winners.values()] == ([traces[1]] if chosen else [])
    assert [why.startswith("no gain") for why in found.reasons.values()] == ([] if chosen else [True])


SURE = [timing(2.0), timing(1.9)]
"""Timings of the search that leave no doubt about a gain, only about which script gains most."""


@pytest.mark.parametrize(("rival", "best"), [(timing(1.1), 1), (timing(0.9), 0), (CRASH, 0)])
def test_scripts_that_gain_without_doubt_are_compared_with_each_other(
    rival: Timing | Failure, best: int, traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions([[rival], [timing(1.9)]])
    (winner,) = finalists_of(sessions, traces, monkeypatch, SURE).winners.values()
    assert winner.trace == traces[best]
    assert winner.code == f"code {best}"
    assert winner.timing.ratio == 1.9, "the script is reported with its ratio to the untuned code"
    assert sessions.baselines == ["code 0", "code -1"]


def test_where_the_best_script_of_the_search_fails_the_others_are_compared_with_the_untuned_code(
    traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions([BaselineError("it crashes"), [CRASH, timing(1.8)], [timing(1.7)]])
    (winner,) = finalists_of(sessions, traces, monkeypatch, SURE).winners.values()
    assert winner.trace == traces[1]
    assert winner.timing.ratio == 1.7


def unchecked(record: Record) -> Record:
    return replace(record, outcome=replace(record.outcome, verdict=Verdict.NOT_CHECKED))


@pytest.mark.parametrize(("rival", "best"), [(CRASH, 1), (timing(1.3), 0)])
def test_what_was_not_checked_is_a_finalist_behind_those_that_were(
    rival: Timing | Failure, best: int, traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions([[rival], [timing(1.7)]])
    replace_processes(monkeypatch, sessions)
    first, second = (record(trace, "", each) for trace, each in zip(traces, SURE, strict=True))
    search = Searched(task_of("matmul", DISPATCH), SPACE, [unchecked(first), second])
    (winner,) = choose_finalists([cast("TaskSearch", search)], OPTIONS).winners.values()
    assert sessions.baselines == ["code 0", "code -1"]
    assert sessions.compiled[0] == SPACE.script(traces[1]), "the checked one is what others are compared with"
    assert winner.trace == traces[best]


def test_where_nothing_was_checked_all_are_compared_with_the_untuned_code(
    traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = Sessions([[CRASH, timing(1.8)], [timing(1.7)]])
    replace_processes(monkeypatch, sessions)
    records = [
        unchecked(record(trace, "", each)) for trace, each in zip(traces, [timing(4.0), timing(2.0)], strict=True)
    ]
    search = cast("TaskSearch", Searched(task_of("matmul", DISPATCH), SPACE, records))
    (winner,) = choose_finalists([search], OPTIONS).winners.values()
    assert winner.trace == traces[1]
    assert sessions.baselines == ["code -1", "code -1"]
    assert choose_finalists([search], None).reasons, "where nothing is run, nothing is checked later"


@pytest.mark.parametrize("repeated", [0, 1])
def test_why_a_script_failed_when_repeated_is_said_in_words(
    repeated: int, traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failure(FailureClass.WRONG_RESULT, "random inputs: output 0: 3 of 9 elements are too far off")
    sessions = Sessions([[timing(1.3), timing(1.2)], [failing]] if repeated else [[failing, failing]])
    (note,) = finalists_of(sessions, traces, monkeypatch).reasons.values()
    assert note == f"the {'chosen script' if repeated else 'finalists'} failed when repeated: {failing}"
    assert str(failing) == f"wrong_result: {failing.message}"
