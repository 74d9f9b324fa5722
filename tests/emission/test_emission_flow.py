"""What is decided in one session is reported from another one, and what does not hold there falls back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from replayed_run import TARGET, matmul_dispatch, task_of

from mlir_sched.compiler import CompileResult
from mlir_sched.database.record import Origin, Record
from mlir_sched.emission import export, finalists
from mlir_sched.emission.export import Emission, emit
from mlir_sched.emission.final_measurement import ProgramFailedError, ProgramTimings
from mlir_sched.emission.finalists import Finalists, Winner, choose_finalists
from mlir_sched.emission.proof import Proven
from mlir_sched.emission.time_left import TimeLeft
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.library.library import TunedSequence
from mlir_sched.outcome import Outcome, Timing, as_untuned
from mlir_sched.program.closing import call_s
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.runner import BaselineError, RunnerOptions, RunResult
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuned_folder.installation import EmittedFiles
from mlir_sched.tuning.task_search import TaskSearch

DISPATCH = matmul_dispatch(64, 96, 32)
SPACE = DesignSpace(Space.default(TARGET), DISPATCH, TARGET)
OPTIONS = RunnerOptions()


def timing(ratio: float, width: float = 0.002) -> Timing:
    return Timing(1e-3 / ratio, 1e-3, 1e-3, 20, ratio, ratio - width, ratio + width)


class Nothing:
    """A context manager in the place of processes."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> Nothing:
        return self

    def __exit__(self, *_: object) -> None:
        pass


# One dispatch


SEARCHED = timing(2.0)
"""The timing of every candidate during the search."""


def record(trace: Trace, script: str, searched: Timing = SEARCHED) -> Record:
    outcome = Outcome(searched, None, trace.key)
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
        return self.records

    def seconds_per_run(self) -> float:
        return self.task.weight * self.untuned.median_s


@dataclass
class Sessions:
    """Timings of scripts, session by session, in place of measurements."""

    ratios: Sequence[Sequence[Timing | Failure]]
    compiled: list[str] = field(default_factory=list)

    def compile(self, task: Task, scripts: Sequence[str], pool: object) -> list[CompileResult]:
        del task, pool
        self.compiled += scripts
        return [CompileResult(b"", None, "", 0.1, f"code {index - 1}") for index in range(len(scripts) + 1)]

    def measure(
        self, task: Task, compiled: object, chosen: Sequence[int], runner: object
    ) -> tuple[Timing, list[RunResult]]:
        del task, compiled, runner
        session, *self.ratios = self.ratios
        found = [session[index] for index in chosen]
        return timing(1.0), [RunResult(None, f) if isinstance(f, Failure) else RunResult(f, None) for f in found]


@pytest.fixture
def traces() -> list[Trace]:
    return [SPACE.sample(np.random.default_rng(seed)) for seed in range(2)]


def replace_processes(
    monkeypatch: pytest.MonkeyPatch, sessions: Sessions, runner: Callable[[RunnerOptions], Nothing] = Nothing
) -> None:
    """Have nothing started, and the sessions' timings taken."""
    monkeypatch.setattr(finalists, "CompilerPool", Nothing)
    monkeypatch.setattr(finalists, "Runner", runner)
    monkeypatch.setattr(finalists, "compile_scripts", sessions.compile)
    monkeypatch.setattr(finalists, "measure_compiled", sessions.measure)


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
    assert sessions.compiled == [SPACE.script(trace, winner.symbol) for trace in traces]
    assert winner.script == sessions.compiled[1]


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
    session = Sessions([[timing(1.9), timing(1.8)], [timing(1.7)]][-sessions:])
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
    assert session.compiled == [SPACE.script(trace, winner.symbol) for trace in (drawn[0], drawn[2])]


def test_the_next_best_takes_the_place_of_one_that_fails_when_repeated(
    traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failure(FailureClass.WRONG_RESULT, "on 2 threads: output 0: 3 of 9 elements are too far off")
    session = Sessions([[failing], [timing(1.4)]])
    (winner,) = finalists_of(session, traces, monkeypatch, (timing(2.0), timing(1.5))).winners.values()
    assert (winner.trace, winner.timing.ratio) == (traces[1], 1.4)


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
    budgets: list[float] = []

    class Runner(Nothing):
        def __init__(self, options: RunnerOptions) -> None:
            budgets.append(options.racing.budget_s)

    sessions = Sessions([[timing(1.5)] * 3, [timing(1.5)], [timing(1.5)]])
    replace_processes(monkeypatch, sessions, Runner)
    drawn = [SPACE.sample(np.random.default_rng(seed)) for seed in range(4)]
    records = [record(trace, "") for trace in drawn]
    task = task_of("matmul", DISPATCH)
    light, heavy = (replace(task, key=key, name=key, weight=weight) for key, weight in (("light", 1), ("heavy", 99)))
    searches = [cast("TaskSearch", Searched(one, SPACE, records)) for one in (light, heavy)]
    found = choose_finalists(searches, RunnerOptions.final("local"))
    assert list(found.winners) == ["light", "heavy"]
    assert budgets == [1.0, 1.0, finalists.LIGHT_BUDGET_S]
    assert len(sessions.compiled) == finalists.FINALISTS + 1
    assert not sessions.ratios


def test_tasks_without_time_for_a_choice_get_what_the_search_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions([[timing(1.5)]])
    replace_processes(monkeypatch, sessions)
    records = [record(SPACE.sample(np.random.default_rng(seed)), "") for seed in range(4)]
    searched = cast("TaskSearch", Searched(task_of("matmul", DISPATCH), SPACE, records))
    found = choose_finalists([searched], RunnerOptions.final("local"), seconds=0.0)
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


@pytest.mark.parametrize("repeated", [0, 1])
def test_why_a_script_failed_when_repeated_is_said_in_words(
    repeated: int, traces: list[Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = Failure(FailureClass.WRONG_RESULT, "random inputs: output 0: 3 of 9 elements are too far off")
    sessions = Sessions([[timing(1.3), timing(1.2)], [failing]] if repeated else [[failing, failing]])
    (note,) = finalists_of(sessions, traces, monkeypatch).reasons.values()
    assert note == f"the {'chosen script' if repeated else 'finalists'} failed when repeated: {failing}"
    assert str(failing) == f"wrong_result: {failing.message}"


# The whole program


def built(name: str) -> BuiltVariant:
    return BuiltVariant(Variant(name, ()), Model("m.mlir", (), (), (name,)), name.encode(), timing(1.0), (name,))


VARIANTS = [built("default"), built("O3"), replace(built("broken"), timing=None)]


def winner(key: str, saves: float) -> Winner:
    task = replace(task_of("matmul", DISPATCH), key=key, name=key)
    return Winner(task, SPACE, Trace("sketch", ()), "", "", timing(saves), timing(1.0), f"tuned_{key}", 0)


WINNERS = {key: winner(key, saves) for key, saves in (("a", 1.1), ("b", 3.0), ("c", 2.0), ("d", 1.2))}


Session = dict[str, Timing] | Failure


@dataclass
class Program:
    """Timings of programs, session by session, or a failure; a program is known by its name or its scripts."""

    sessions: Sequence[Session]
    proven: list[tuple[str, ...]] = field(default_factory=list)
    references: list[str] = field(default_factory=list)

    def prove(self, variant: BuiltVariant, sequences: Mapping[str, TunedSequence]) -> Proven:
        self.proven.append((variant.variant.name, *sequences))
        vmfb = ("+".join(sequences) or variant.variant.name).encode()
        return Proven(variant, sequences, {}, EmittedFiles("", (vmfb.decode(),)), vmfb)

    def measure(
        self,
        runner: object,
        model: object,
        untuned: CompiledModel,
        others: Mapping[str, CompiledModel],
        emitted: CompiledModel,
    ) -> ProgramTimings:
        del runner, model
        self.references.append(untuned.vmfb.decode())
        session, *self.sessions = self.sessions
        if isinstance(session, Failure):
            raise ProgramFailedError(session)
        if not session:
            raise BaselineError("no reference")
        return ProgramTimings(
            timing(1.0),
            session[emitted.vmfb.decode()],
            {name: session[name] for name in others if name in session},
            True,
        )

    def measure_all(
        self, runner: object, model: object, untuned: object, variants: Mapping[str, CompiledModel]
    ) -> tuple[Timing, Mapping[str, Timing]]:
        del runner, model, untuned
        session, *self.sessions = self.sessions
        assert not isinstance(session, Failure)
        return timing(1.0), {name: session[name] for name in variants}


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(program: Program, winners: Mapping[str, Winner], variants: Sequence[BuiltVariant] = VARIANTS) -> Emission:
        monkeypatch.setattr(export, "Prover", lambda *_: program)
        monkeypatch.setattr(export, "Runner", Nothing)
        monkeypatch.setattr(export, "measure_program", program.measure)
        monkeypatch.setattr(export, "measure_variants", program.measure_all)
        tuned = min((v for v in variants if v.timing is not None), key=call_s)
        emission = emit(Path("m.mlir"), variants, tuned, Finalists(winners), OPTIONS, TARGET)
        assert not program.sessions, "every session is used"
        return emission

    return run


def test_figures_are_those_of_the_session_that_decided_nothing(emitted: Any) -> None:
    program = Program([{"a+b+c+d": timing(1.5), "O3": timing(1.1)}, {"a+b+c+d": timing(1.45)}])
    emission = emitted(program, WINNERS)
    assert emission.program.tuned.ratio == 1.45
    assert emission.program.variants == {"default": 1.0, "O3": 1.1}
    assert list(emission.winners) == [*WINNERS]
    assert program.proven == [("default", *WINNERS)]


def timed(name: str, seconds: float) -> BuiltVariant:
    timing = Timing(seconds, seconds, seconds, 9, 4.0 / seconds, 4.0 / seconds, 4.0 / seconds)
    return replace(built(name), timing=timing)


FAR_SLOWER = [timed("default", 4.0), timed("layout", 1.0), timed("slow", 3.9)]
"""The layout is tuned; its dispatches take little of its time."""


def test_where_the_default_is_far_slower_the_fastest_variant_is_compared_with(emitted: Any) -> None:
    program = Program([{"a+b+c+d": timing(1.2)}, {"a+b+c+d": timing(4.7)}])
    emission = emitted(program, WINNERS, FAR_SLOWER)
    assert program.references == ["layout", "default"]
    assert emission.program.tuned.ratio == 4.7
    assert emission.program.variants == {"default": 1.0, "layout": 4.0, "slow": 4.0 / 3.9}


def test_noise_of_the_default_does_not_hide_that_scripts_beat_the_fastest_variant(emitted: Any) -> None:
    noisy = Timing(1e-3, 1e-3, 1e-3, 9, 0.8, 0.7, 0.9)
    program = Program([{"a+b+c+d": timing(1.16), "default": noisy}, {"a+b+c+d": timing(1.4)}])
    emission = emitted(program, WINNERS, [timed("default", 1.3), timed("layout", 1.0)])
    assert program.references == ["layout", "default"]
    assert list(emission.winners) == [*WINNERS]
    assert emission.program.variants == {"default": 1.0, "layout": 1.25}


def test_the_default_is_compared_with_where_it_fails_beside_the_fastest_variant(emitted: Any) -> None:
    sessions: list[Session] = [{"a+b+c+d": timing(1.2)}, {"a+b+c+d": timing(1.5), "layout": timing(1.3)}]
    program = Program([*sessions, {"a+b+c+d": timing(1.5)}])
    emission = emitted(program, WINNERS, [timed("default", 1.3), timed("layout", 1.0)])
    assert program.references == ["layout", "default", "default"]
    assert list(emission.winners) == [*WINNERS]


def test_scripts_have_to_beat_the_variant_that_they_are_compared_with(emitted: Any) -> None:
    slower = [{names: timing(0.9)} for names in ("a+b+c+d", "b+c", "b")]
    emission = emitted(Program([*slower, {"layout": timing(4.0)}]), WINNERS, FAR_SLOWER)
    assert not emission.winners
    assert emission.program.variant == "layout"


def test_the_default_serves_where_the_fastest_variant_cannot(emitted: Any) -> None:
    program = Program([{}, {"a+b+c+d": timing(4.8)}, {"a+b+c+d": timing(4.7)}])
    emission = emitted(program, WINNERS, FAR_SLOWER)
    assert program.references == ["layout", "default", "default"]
    assert list(emission.winners) == [*WINNERS]
    assert emission.program.variants == {"default": 1.0, "slow": 4.0 / 3.9}


def test_scripts_that_are_not_faster_when_measured_again_are_not_emitted(emitted: Any) -> None:
    sessions = [
        {"a+b+c+d": timing(1.03), "O3": timing(1.0)},
        {"a+b+c+d": timing(0.98)},
        {"default": timing(1.0)},
    ]
    emission = emitted(Program(sessions), WINNERS)
    assert not emission.winners
    assert emission.program.variant == "default"
    assert emission.program.tuned.ratio == 1.0
    assert set(emission.reasons.values()) == {"the program was 0.98x (0.98 to 0.98) when measured again"}


def test_a_disturbed_session_does_not_decide(emitted: Any) -> None:
    disturbed = replace(timing(3.0), ratio_low=0.9)
    sessions = [
        {"a+b+c+d": disturbed, "O3": timing(1.0)},
        {"a+b+c+d": timing(3.0), "O3": timing(1.0)},
        {"a+b+c+d": disturbed},
        {"a+b+c+d": timing(2.9)},
    ]
    emission = emitted(Program(sessions), WINNERS)
    assert list(emission.winners) == [*WINNERS]
    assert emission.program.tuned.ratio == 2.9


def test_after_two_disturbed_sessions_the_untuned_program_is_emitted(emitted: Any) -> None:
    disturbed = {"a+b+c+d": replace(timing(3.0), ratio_low=0.9), "O3": timing(1.0)}
    without = [{"b+c": timing(0.9), "O3": timing(1.0)}, {"b": timing(0.9), "O3": timing(1.0)}]
    emission = emitted(Program([disturbed, disturbed, *without, {"default": timing(1.0)}]), WINNERS)
    assert not emission.winners
    assert emission.program.variant == "default"


TIMEOUT = Failure(FailureClass.RUN_TIMEOUT, "stopped after 6 s")


def test_a_failure_that_may_be_the_machines_is_a_disturbance(emitted: Any) -> None:
    sessions: list[Session] = [TIMEOUT, {"a+b+c+d": timing(1.5), "O3": timing(1.1)}, TIMEOUT, {"a+b+c+d": timing(1.4)}]
    emission = emitted(Program(sessions), WINNERS)
    assert list(emission.winners) == [*WINNERS]
    assert emission.program.tuned.ratio == 1.4


def test_the_untuned_program_is_emitted_although_a_session_fails(emitted: Any) -> None:
    emission = emitted(Program([{"O3": timing(1.0)}, TIMEOUT, {"default": timing(1.0)}]), {})
    assert emission.program.variant == "default"


def test_wrong_numbers_are_wrong_at_once(emitted: Any) -> None:
    wrong = Failure(FailureClass.WRONG_RESULT, "output 0: zeros")
    emission = emitted(Program([wrong, {"O3": timing(1.0)}, {"default": timing(1.0)}]), WINNERS)
    assert set(emission.reasons.values()) == {"the emitted program fails its check (wrong_result): output 0: zeros"}


def test_the_half_that_saves_least_goes_first_where_scripts_slow_the_program(emitted: Any) -> None:
    sessions = [
        {"a+b+c+d": timing(0.9), "O3": timing(1.0)},
        {"b+c": timing(1.6), "O3": timing(1.0)},
        {"b+c": timing(1.6)},
    ]
    emission = emitted(Program(sessions), WINNERS)
    assert list(emission.winners) == ["b", "c"]
    assert set(emission.reasons) == {"a", "d"}
    assert "with the scripts and 1.00x" in emission.reasons["a"]


@pytest.mark.parametrize(("again", "variant", "ratio"), [(timing(1.05), "O3", 1.05), (timing(0.97), "default", 1.0)])
def test_flags_that_do_not_hold_when_measured_again_are_not_emitted(
    emitted: Any, again: Timing, variant: str, ratio: float
) -> None:
    sessions = [{"O3": timing(1.06)}, {"O3": again}, *([{"default": timing(1.0)}] if variant == "default" else [])]
    emission = emitted(Program(sessions), {})
    assert (emission.program.variant, emission.program.tuned.ratio) == (variant, ratio)
    assert emission.files.flags == (variant,)


@pytest.mark.parametrize(("found", "kept"), [(ProgramProfile({}, {"a": 1, "b": 2}), ["a", "b"]), (None, ["a"])])
def test_scripts_that_no_run_of_the_program_has_called_are_not_emitted(
    found: ProgramProfile | None, kept: list[str], emitted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    winners = {
        key: replace(w, task=replace(w.task, may_not_run=key in "bc")) for key, w in WINNERS.items() if key != "d"
    }
    monkeypatch.setattr(export, "profile", lambda *_: found)
    name = "+".join(kept)
    emission = emitted(Program([{name: timing(1.6), "O3": timing(1.0)}, {name: timing(1.6)}]), winners)
    assert list(emission.winners) == kept
    assert emission.reasons == dict.fromkeys([key for key in winners if key not in kept], export.NOT_RUN)


@pytest.mark.parametrize(("left_s", "kept"), [(math.inf, ["b", "c"]), (0.0, [])])
def test_fewer_scripts_are_tried_while_there_is_time(
    left_s: float, kept: list[str], emitted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slower = {"a+b+c+d": timing(0.9), "O3": timing(1.0)}
    again: list[Session] = [{"b+c": timing(1.6), "O3": timing(1.0)}, {"b+c": timing(1.6)}]
    monkeypatch.setattr(export, "TimeLeft", lambda: TimeLeft(time.monotonic() + left_s))
    monkeypatch.setattr(export, "program_hash", bytes)
    emission = emitted(Program([slower, *(again if kept else [])]), WINNERS)
    assert list(emission.winners) == kept
    assert kept or emission.program.tuned == as_untuned(timing(1.0)), "the untuned program is not measured once more"
