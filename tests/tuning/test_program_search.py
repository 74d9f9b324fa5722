"""The search over the tasks of one program: the order of rounds, and what tasks learn from each other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from replayed_run import TARGET, Heard, matmul_dispatch, program_search, task_of
from replayed_run import searched as whole
from speedups import Estimating, Factor, Speedups, timing

from mlir_sched.database import RecordStore
from mlir_sched.outcome import Outcome
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variants.early_decisions import ATTENTION, LAYOUT
from mlir_sched.search import Demand
from mlir_sched.tasks.task import Task
from mlir_sched.tuned_folder.result import ProgramCurve
from mlir_sched.tuning.budget import EXPLORATION, SET_ASIDE, Allowance
from mlir_sched.tuning.exchange import found_traces
from mlir_sched.tuning.journal import RoundLog, generation_of
from mlir_sched.tuning.ledger import COVERING_BUILDS, OVERTAKING_BUILDS, VARIANT_CALLS
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.program_search import NO_TIME_TO_MEASURE, ProgramSearch
from mlir_sched.tuning.progress import Phase, SearchState
from mlir_sched.tuning.task_search import demand_of
from mlir_sched.tuning.tuning_run import RunClock
from mlir_sched.tuning.variant_choice import LARGE_BUILD_S, MOST_COMPILED, VariantChoice

SHAPES = {"light": (64, 96, 32), "heavy": (128, 64, 48), "other": (32, 64, 96)}
WEIGHTS = {"light": 1, "heavy": 5, "other": 2}


def searched(folder: Path, speedups: Mapping[str, Factor], trials: int) -> tuple[ProgramSearch, Speedups]:
    """Return a search of so many trials over the three tasks."""
    evaluator = Speedups(speedups)
    tasks = [replace(task_of(n, matmul_dispatch(*shape)), weight=WEIGHTS[n]) for n, shape in SHAPES.items()]
    with RecordStore.open(folder / "records.sqlite") as store:
        options = TuneOptions(trials=trials, round_size=9)
        return whole(program_search(options, store, tasks), evaluator), evaluator


def test_first_rounds_share_a_batch_and_the_heaviest_task_comes_first(tmp_path: Path) -> None:
    _, evaluator = searched(tmp_path, dict.fromkeys(SHAPES, 0.5), trials=9)
    assert evaluator.measured == ["heavy"] * 3 + ["other"] * 3 + ["light"] * 3


def test_what_is_found_for_a_task_is_tried_on_those_that_it_fits(tmp_path: Path) -> None:
    program, _ = searched(tmp_path, {"heavy": 2.0, "other": 1.5, "light": 0.5}, trials=12)
    heavy, other, light = program.searches
    found = heavy.history.best_trace()
    assert found is not None
    assert other.history.best_trace() is not None
    assert light.history.best_trace() is None, "it is slower than the untuned code"
    assert [search.fitted(found) for search in (heavy, other, light)] == [None] * 3


def test_the_best_time_after_a_round_is_of_the_candidates_up_to_it(tmp_path: Path) -> None:
    program, _ = searched(tmp_path, {"heavy": lambda tried: 1.0 + tried / 9, "other": 1.0, "light": 1.0}, trials=90)
    heavy = program.searches[0]
    times = [record.outcome.timing.median_s for record in heavy.history.records.values() if record.outcome.timing]
    assert len(heavy.history.trials) > 2
    assert heavy.history.best_s == [min(times[:tried]) for tried in heavy.history.trials]
    assert heavy.history.trials[-1] == heavy.tried == len(times)


ALIKE: Mapping[str, Factor] = dict.fromkeys(SHAPES, 1.0)


def with_estimates(folder: Path, evaluator: Estimating, heard: Heard) -> ProgramSearch:
    """Return a search of two rounds of 4 trials over one task, of which the first is chosen by estimates."""
    with RecordStore.open(folder / "records.sqlite") as store:
        options = TuneOptions(trials=8, round_size=4)
        search = program_search(options, store, [task_of("heavy", matmul_dispatch(*SHAPES["heavy"]))], heard=heard)
        return whole(replace(search, run=replace(search.run, drawn=3)), evaluator)


def test_the_first_round_is_the_best_of_many_by_the_estimates_of_a_model(tmp_path: Path) -> None:
    evaluator = Estimating(ALIKE)
    program = with_estimates(tmp_path, evaluator, Heard())
    (drawn,) = evaluator.drawn
    assert len(drawn) == len(set(drawn)) == 4 * 3
    assert set(evaluator.scripts[:4]) == set(drawn[-4:])
    assert not set(evaluator.scripts[4:]) & set(drawn), "what was left is never suggested again"
    assert program.tried == 8


def test_a_task_with_records_needs_no_estimates(tmp_path: Path) -> None:
    with_estimates(tmp_path, Estimating(ALIKE), Heard())
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        options = TuneOptions(trials=4, round_size=4, seed=1)
        search = program_search(options, store, [task_of("heavy", matmul_dispatch(*SHAPES["heavy"]))])
        whole(replace(search, run=replace(search.run, drawn=3)), evaluator := Estimating(ALIKE))
    assert not evaluator.drawn
    assert len(evaluator.scripts) == 4


def test_a_model_that_fails_leaves_the_draws_in_their_order(tmp_path: Path) -> None:
    evaluator, heard = Estimating(ALIKE, RuntimeError("no such register")), Heard()
    program = with_estimates(tmp_path, evaluator, heard)
    (drawn,) = evaluator.drawn
    assert set(evaluator.scripts[:4]) <= set(drawn)
    assert program.tried == 8
    assert [text.splitlines()[-1] for text in heard.internal_errors] == ["RuntimeError: no such register"]


def test_a_variant_starts_from_what_was_found_on_another(tmp_path: Path) -> None:
    first, evaluator = searched(tmp_path, {"heavy": 2.0, "other": 1.5, "light": 0.5}, trials=9)
    found = [trace for search in first.searches if (trace := search.history.best_trace())]
    task = task_of("part", matmul_dispatch(64, 64, 48))
    evaluator.by_name["part"] = 1.0
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        options = TuneOptions(trials=20, round_size=9)
        program = program_search(options, store, [task])
        for work in program.work(Allowance(9, trials=3), found_traces(first.searches)):
            work.run(evaluator)
    (part,) = program.searches
    assert len(found) == 2
    assert [part.fitted(trace) for trace in found] == [None, None]


class Noted(Speedups):
    """Speed-ups that are known, and what was measured, as (task, script); the script of untuned code is empty."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys((*SHAPES, "changed"), 1.5))
        self.scripts: list[tuple[str, str]] = []

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        self.scripts.append((task.name, ""))
        return super().untuned(task, following)

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        self.scripts += [(task.name, script) for script in scripts]
        return super().evaluate(task, scripts, known)


def test_of_a_changed_model_only_what_changed_is_measured_from_the_beginning(tmp_path: Path) -> None:
    evaluators = []
    for last in ("light", "changed"):
        evaluators.append(Noted())
        shapes = {"heavy": SHAPES["heavy"], "other": SHAPES["other"], last: (64, 32, len(last))}
        tasks = [task_of(name, matmul_dispatch(*shape)) for name, shape in shapes.items()]
        with RecordStore.open(tmp_path / "records.sqlite") as store:
            options = TuneOptions(trials=18, round_size=9)
            whole(program_search(options, store, tasks), evaluators[-1])
    before, after = (set(evaluator.scripts) for evaluator in evaluators)
    assert [len(evaluator.scripts) for evaluator in evaluators] == [len(before), len(after)] == [3 + 18, 1 + 18]
    assert not before & after, "a candidate was measured for both models"
    assert {name for name, script in after if not script} == {"changed"}


class Shown(Heard):
    """Keeps the best speed-ups that were told, as (phase, by dispatch)."""

    def __init__(self) -> None:
        super().__init__()
        self.best: list[tuple[Phase, dict[str, float]]] = []

    def on_phase(self, phase: Phase, state: SearchState, dispatch: str = "") -> None:
        del dispatch
        self.best.append((phase, dict(state.best)))


def test_a_dispatch_has_a_best_speed_up_once_candidates_of_it_were_tried(tmp_path: Path) -> None:
    tasks = [task_of(name, matmul_dispatch(*SHAPES[name])) for name in ("heavy", "light")]
    told = []
    for seed in (0, 1):
        told.append(Shown())
        with RecordStore.open(tmp_path / "records.sqlite") as store:
            options = TuneOptions(trials=9, round_size=9, seed=seed)
            whole(program_search(options, store, tasks, heard=told[-1]), Speedups({"heavy": 2.0, "light": 0.5}))
    first, later = ([best for phase, best in shown.best if phase is Phase.UNTUNED] for shown in told)
    assert first == [{}] * 3, "only untuned code was measured"
    assert later == [{}, {"heavy": 2.0}, {"heavy": 2.0}], "the store knows a faster candidate"
    seen = [best for phase, best in told[0].best if phase is Phase.SEARCH]
    assert seen[0] == {}
    assert seen[1] == {"heavy": 2.0}
    assert seen[-1] == {"heavy": 2.0, "light": 1.0}


def test_what_a_task_computes_and_moves_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    def counting(task: Task) -> Demand | None:
        counted.append(task.name)
        return demand_of(task)

    monkeypatch.setattr("mlir_sched.tuning.task_search.demand_of", counting)
    program, _ = searched(tmp_path, dict.fromkeys(SHAPES, 1.0), trials=60)
    assert sum(search.history.rounds for search in program.searches) > len(SHAPES)
    assert sorted(counted) == sorted(SHAPES)


@pytest.mark.parametrize("trials", [1, 5, 10, 13])
def test_the_budget_is_kept(trials: int, tmp_path: Path) -> None:
    program, evaluator = searched(tmp_path, {"heavy": 2.0, "other": 1.5, "light": 1.2}, trials)
    assert program.tried == len(evaluator.measured) == trials


class SlowUntuned(Speedups):
    """Speed-ups that are known, untuned code that takes ten seconds to measure, and rounds that take two."""

    clock: RunClock

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        self.clock.start -= 10.0
        return super().untuned(task, following)

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        self.clock.start -= 2.0
        return super().evaluate(task, scripts, known)


def by_time(folder: Path, *limits_s: float) -> list[tuple[set[str], dict[str, str]]]:
    """Return, after a search up to each limit, the tasks that are searched and why others are not."""
    tasks = [task_of(name, matmul_dispatch(*shape)) for name, shape in SHAPES.items()]
    profile = ProgramProfile({"heavy": 0.7, "other": 0.2, "light": 0.1}, dict.fromkeys(SHAPES, 1))
    evaluator, seen = SlowUntuned(dict.fromkeys(SHAPES, 1.0)), []
    with RecordStore.open(folder / "records.sqlite") as store:
        options = TuneOptions(minutes=1, round_size=9)
        program = program_search(options, store, tasks, profile=profile)
        evaluator.clock = program.run.clock
        for limit_s in limits_s:
            for work in program.work(Allowance(9, None, limit_s)):
                work.run(evaluator)
            seen.append(({search.task.name for search in program.searches}, program.unsearched()))
    return seen


def test_by_time_half_is_for_the_untuned_code_of_what_matters_most_and_the_rest_has_its_turn_later(
    tmp_path: Path,
) -> None:
    early, late = by_time(tmp_path, 12.0, 42.0)
    assert early[0] == {"heavy"}
    assert set(early[1].values()) == {NO_TIME_TO_MEASURE}
    assert late == (set(SHAPES), {})


def test_a_search_that_goes_another_way_than_the_process_that_it_resumes_ends_in_time(tmp_path: Path) -> None:
    tasks = [task_of(name, matmul_dispatch(*shape)) for name, shape in SHAPES.items()]
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        program = program_search(TuneOptions(minutes=1, round_size=9), store, tasks)
        evaluator = Speedups(dict.fromkeys(SHAPES, 1.0))
        parts = (
            Allowance(9, None, until_s=60.0, most=0),
            Allowance(9, None, until_s=-1.0),
        )  # for untuned code; for no more rounds
        for part in parts:
            program.log = replace(RoundLog.of(program.run, program.tasks, program.target), rounds=100, trials=900)
            for work in program.work(part):
                work.run(evaluator)
    assert 9 < program.tried <= 9 + 9


def test_a_run_by_time_compiles_variants_for_a_third_of_it_and_a_resumed_one_the_same(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text("module {}")
    options = TuneOptions(minutes=1.0)
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        now = time.monotonic()
        first = VariantChoice.of(model, TARGET, options, store, now - 19.0)
        assert first.should_compile("O3")
        first.until = now
        assert not first.should_compile("data-tiling")
        first.keep()
        resumed = VariantChoice.of(model, TARGET, options, store, now)
        assert [resumed.should_compile(name) for name in ("O3", "data-tiling")] == [True, False]
        assert VariantChoice.of(model, TARGET, TuneOptions(trials=5), store, now - 1e6).should_compile("data-tiling")


@pytest.mark.parametrize(("timing_s", "build_s", "wanted"), [(8.0, 0.0, 2), (8.0, 5.0, 1), (0.0, 21.0, 0)])
def test_variants_that_take_long_to_be_compiled_and_timed_are_fewer(
    timing_s: float, build_s: float, wanted: int, tmp_path: Path
) -> None:
    model = tmp_path / "model.mlir"
    model.write_text("module {}")
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        choice = VariantChoice.of(model, TARGET, TuneOptions(minutes=1.0), store, time.monotonic())
        assert choice.hurried
        choice.note_costs(call_s=timing_s / VARIANT_CALLS, build_s=build_s)  # of the 20 seconds that all may take
        assert [choice.should_compile(name) for name in ("a", "b", "c")] == [number < wanted for number in range(3)]


@pytest.mark.parametrize(("minutes", "told"), [(1.0, 1), (30.0, 0), (None, 0)])
def test_minutes_that_are_too_few_are_told_once_the_default_is_compiled_and_its_calls_are_known(
    minutes: float | None, told: int, tmp_path: Path
) -> None:
    model, notes = tmp_path / "model.mlir", list[str]()
    model.write_text("module {}")
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        choice = VariantChoice.of(model, TARGET, TuneOptions(minutes=minutes), store, 0.0, note=notes.append)
        choice.note_costs(call_s=0.0, build_s=30.0)
        assert notes == []
        choice.note_costs(call_s=0.1, build_s=30.0)
    assert len(notes) == told


@pytest.mark.parametrize(("build_s", "extended"), [(3.0, False), (0.9 * LARGE_BUILD_S, True)])
def test_a_variant_is_compiled_beside_a_faster_one_where_the_search_has_time_for_both(
    build_s: float, extended: bool, tmp_path: Path
) -> None:
    model = tmp_path / "model.mlir"
    model.write_text("module {}")
    least_s = 2 * COVERING_BUILDS * build_s / EXPLORATION / (1 - SET_ASIDE)
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        for options, wanted in (
            (TuneOptions(minutes=0.9 * least_s / 60), False),
            (TuneOptions(minutes=1.1 * least_s / 60), True),
            (TuneOptions(trials=5), True),
        ):
            choice = VariantChoice.of(model, TARGET, options, store, time.monotonic())
            choice.note_costs(call_s=0.0, build_s=build_s)
            assert choice.should_compile("a")
            assert choice.should_compile_beside("b", extended=extended) is wanted
            choice.keep()
            resumed = VariantChoice.of(model, TARGET, options, store, 0.0 if wanted else time.monotonic())
            assert resumed.should_compile_beside("b", extended=extended) is wanted


def test_what_another_variant_extends_is_not_compiled_of_a_large_program(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text("module {}")
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        choice = VariantChoice.of(model, TARGET, TuneOptions(minutes=60.0), store, time.monotonic())
        choice.note_costs(call_s=0.0, build_s=LARGE_BUILD_S)
        assert not choice.should_compile_beside("a", extended=True)
        assert choice.should_compile_beside("a", extended=False)


def test_a_run_by_time_compiles_few_variants_of_a_large_program(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text("module {}")
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        for build_s, wanted in ((LARGE_BUILD_S, "ab d"), (0.9 * LARGE_BUILD_S, "abcde")):
            options = TuneOptions(minutes=30.0, seed=int(build_s == LARGE_BUILD_S))
            choice = VariantChoice.of(model, TARGET, options, store, time.monotonic())
            choice.note_costs(call_s=0.0, build_s=build_s)
            assert [choice.should_compile(name) for name in "abc"] == [name in wanted for name in "abc"]
            choice.note_failure("b")
            assert [choice.should_compile(name) for name in "de"] == [name in wanted for name in "de"]
        assert MOST_COMPILED == 2


def test_a_variant_is_refined_at_once_where_the_search_has_time_for_it_and_so_in_a_resumed_run(tmp_path: Path) -> None:
    model, build_s = tmp_path / "model.mlir", 3.0
    model.write_text("module {}")
    least_s = (1 + OVERTAKING_BUILDS) * build_s / (1 - SET_ASIDE)
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        for options, refined in (
            (TuneOptions(minutes=0.9 * least_s / 60), False),
            (TuneOptions(minutes=1.1 * least_s / 60), True),
            (TuneOptions(trials=5), False),
        ):
            choice, resumed = (VariantChoice.of(model, TARGET, options, store, time.monotonic()) for _ in range(2))
            choice.note_costs(call_s=0.0, build_s=build_s)
            assert choice.refines_at_once() is refined
            assert choice.favoured(LAYOUT) == resumed.favoured("") == LAYOUT
            resumed.note_costs(call_s=0.0, build_s=1e6 if refined else 0.0)
            assert resumed.refines_at_once() is refined


def test_the_variant_that_the_profile_speaks_for_is_compiled_as_long_as_there_is_time_to_search(
    tmp_path: Path,
) -> None:
    model, build_s = tmp_path / "model.mlir", 20.0
    model.write_text("module {}")
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        for spent_s, seed, wanted in ((50.0, 0, [False, True, False]), (70.0, 1, [False, False, False])):
            options = TuneOptions(minutes=2.0, seed=seed)
            choice = VariantChoice.of(model, TARGET, options, store, time.monotonic() - spent_s)
            choice.note_costs(call_s=1.9, build_s=build_s)
            assert choice.favoured(LAYOUT) == LAYOUT
            assert [choice.should_compile(name) for name in ("O3", LAYOUT, "data-tiling")] == wanted


def test_what_a_variant_settles_stays_settled_when_the_run_goes_on(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text("module {}")
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        for options, first, second in ((TuneOptions(trials=5), True, False), (TuneOptions(minutes=1.0), False, True)):
            choice, resumed = (VariantChoice.of(model, TARGET, options, store, 0.0) for _ in range(2))
            for name in (LAYOUT, ATTENTION):
                assert choice.dominates(name, far_faster=first) == resumed.dominates(name, far_faster=second) == first
            assert not resumed.dominates("another", far_faster=False)


@pytest.mark.parametrize("options", [TuneOptions(trials=5), TuneOptions(minutes=1.0)])
def test_programs_that_are_short_at_first_have_the_same_variants_when_the_run_goes_on(
    options: TuneOptions, tmp_path: Path
) -> None:
    model = tmp_path / "model.mlir"
    model.write_text("module {}")
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        choice, resumed = (VariantChoice.of(model, TARGET, options, store, 0.0) for _ in range(2))
        assert choice.short(["default"]) == resumed.short(["default", "O3"]) == resumed.short([]) == ["default"]
        other = VariantChoice.of(model, replace(TARGET, cores=TARGET.cores + 1), options, store, 0.0)
        assert other.short(["O3"]) == ["O3"]


def test_what_was_decided_of_variants_holds_for_one_machine_and_number_of_threads(tmp_path: Path) -> None:
    model, options = tmp_path / "model.mlir", TuneOptions(minutes=1.0)
    model.write_text("module {}")
    others = replace(TARGET, cores=TARGET.cores + 1), replace(TARGET, machine=(("cpu", "another"),))
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        assert VariantChoice.of(model, TARGET, options, store, 0.0).dominates(LAYOUT, far_faster=True)
        for target in others:
            assert not VariantChoice.of(model, target, options, store, 0.0).dominates(LAYOUT, far_faster=False)


def test_a_fresh_start_knows_nothing_that_earlier_runs_decided_of_variants(tmp_path: Path) -> None:
    model, options = tmp_path / "model.mlir", TuneOptions(minutes=1.0)
    model.write_text("module {}")
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        earlier, resumed = (VariantChoice.of(model, TARGET, options, store, time.monotonic()) for _ in range(2))
        earlier.until = 0.0
        assert not earlier.should_compile("data-tiling")
        earlier.keep()
        assert earlier.dominates(LAYOUT, far_faster=True)
        assert earlier.short(["default"]) == ["default"]
        assert not resumed.should_compile("data-tiling")
        generation = generation_of(store, fresh=True)
        fresh = VariantChoice.of(model, TARGET, options, store, time.monotonic(), generation=generation)
        assert fresh.should_compile("data-tiling")
        assert not fresh.dominates(LAYOUT, far_faster=False)
        assert fresh.short(["O3"]) == ["O3"]


def test_the_expected_time_is_known_at_every_round_and_a_resumed_run_knows_when_that_was(tmp_path: Path) -> None:
    def curve(trials: int, begun_s: float) -> ProgramCurve:
        evaluator = Speedups({"heavy": 2.0, "light": 1.0})
        tasks = [task_of(name, matmul_dispatch(*SHAPES[name])) for name in ("heavy", "light")]
        with RecordStore.open(tmp_path / "records.sqlite") as store:
            program = program_search(TuneOptions(trials=trials, round_size=8), store, tasks)
            program.built = replace(program.built, timing=timing(3e-3, 1.0))
            program.run.clock.start -= begun_s
            return whole(program, evaluator).curve()

    first, resumed = curve(16, begun_s=100.0), curve(24, begun_s=500.0)
    assert [estimate.trials for estimate in first.estimates] == [0, 4, 8, 16]
    assert [estimate.trials for estimate in resumed.estimates] == [0, 4, 8, 16, 24]
    assert resumed.estimates[:4] == first.estimates
    times = [estimate.run_s for estimate in resumed.estimates]
    assert times == sorted(times)
    assert 100 <= times[0] < times[3] < 200, "the moments of the first process"
    assert times[4] > times[3] + 400, "the seconds of the second process come after those of the first"
    rest_s = 0.95 * 3e-3 - 2e-3  # of the program's time outside of both tasks
    assert first.estimates[0].program_s == pytest.approx(rest_s + 2e-3)
    assert first.estimates[-1].program_s == pytest.approx(rest_s + 1.5e-3)


def test_a_program_that_was_not_timed_has_no_expected_times(tmp_path: Path) -> None:
    program, _ = searched(tmp_path, dict.fromkeys(SHAPES, 1.0), trials=9)
    assert program.estimates == {}


def test_a_resumed_run_has_the_tasks_in_the_order_of_its_first_profile(tmp_path: Path) -> None:
    tasks = [task_of(name, matmul_dispatch(*shape)) for name, shape in SHAPES.items()]
    orders = []
    for seconds in ((0.7, 0.2, 0.1), (0.1, 0.2, 0.7)):
        profile = ProgramProfile(dict(zip(SHAPES, seconds, strict=True)), dict.fromkeys(SHAPES, 1))
        with RecordStore.open(tmp_path / "records.sqlite") as store:
            program = program_search(TuneOptions(minutes=1, round_size=9), store, tasks, profile=profile)
            orders.append([task.name for _, task in program._by_share()])
    assert orders[0] == orders[1] == list(SHAPES)
