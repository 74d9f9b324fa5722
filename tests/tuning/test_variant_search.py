"""The budget is shared between program variants, and goes to the one that tuning makes fastest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from plans import Named, Slow, flagged
from replayed_run import METHOD, TARGET, Heard, matmul_dispatch, task_of, turns_of
from speedups import Factor, Speedups, timing

from mlir_sched.database import RecordStore
from mlir_sched.evaluation.evaluator import Evaluator
from mlir_sched.library import RewriteScript
from mlir_sched.outcome import Outcome
from mlir_sched.payload import Dispatch
from mlir_sched.program.plan import Plan
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.tunability import tunable_variants, with_tunable_time
from mlir_sched.search.task_scheduler import DOUBT, GUESS, IMPROVEMENTS
from mlir_sched.space.space import Space
from mlir_sched.tasks import Model
from mlir_sched.tuning.journal import generation_of
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.tuning_run import TuningRun
from mlir_sched.tuning.variant_search import NOTHING_LEFT, TOO_LITTLE, SearchResult, VariantSearch

SMALL, LARGE, ODD = matmul_dispatch(64, 96, 32), matmul_dispatch(128, 64, 48), matmul_dispatch(60, 84, 36)
SPACE = Space.default(TARGET)


def built(name: str, dispatch: Dispatch, seconds: float) -> BuiltVariant:
    """Return a variant of one task that takes so many times the default's millisecond."""
    task = replace(task_of(name, dispatch), flags=(f"--{name}",))
    model = Model("model.mlir", (), (task,), task.flags)
    return BuiltVariant(flagged(name), model, b"", timing(seconds * 1e-3, 1 / seconds), ())


@pytest.fixture
def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., SearchResult]:
    """Return a function that runs a search of variants in one store, where a candidate takes a second."""

    def run(
        variants: Sequence[BuiltVariant],
        evaluator: Speedups,
        trials: int = 64,
        times: Mapping[str, float] = MappingProxyType({}),
        meanwhile: Callable[[], object] = lambda: None,
        fresh: bool = False,
        seconds: float | None = None,
        name: str = "records.sqlite",
        cores: int = 1,
        stop_below: float | None = None,
    ) -> SearchResult:
        def open_evaluator(built: BuiltVariant) -> AbstractContextManager[Evaluator]:
            assert built.variant in [v.variant for v in variants]
            return nullcontext(evaluator)

        def time_programs(_: object) -> Mapping[str, float]:
            meanwhile()
            return times

        budget = {"trials": trials} if seconds is None else {"minutes": seconds / 60}
        options = TuneOptions(**budget, round_size=8, fresh=fresh, stop_below=stop_below)
        for share in ("SET_ASIDE", "MOST_SET_ASIDE"):
            monkeypatch.setattr(f"mlir_sched.tuning.budget.{share}", 0.0)  # all seconds are for the search
        for module in ("tuning_run", "ledger"):
            clock = SimpleNamespace(monotonic=lambda: evaluator.now_s)
            monkeypatch.setattr(f"mlir_sched.tuning.{module}.time", clock)
        with RecordStore.open(tmp_path / name) as store:
            target = replace(TARGET, cores=cores)
            generation = generation_of(store, fresh=fresh)
            run = TuningRun.of(options, target, SPACE, store, variants, start=0.0, method=METHOD, generation=generation)
            return turns_of(VariantSearch.of(run, variants, Heard(), time_programs), open_evaluator)

    return run


def elsewhere(found: SearchResult) -> int:
    """Return the candidates that were tried on programs that are not emitted."""
    return found.tried - found.best.tried


def test_a_variant_that_is_slower_untuned_wins_when_its_scripts_gain_more(
    search: Callable[..., SearchResult],
) -> None:
    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.2)]
    evaluator = Speedups({"default": 1.1, "rewritten": 5.0})
    found = search(variants, evaluator)
    assert found.best.name == "rewritten"
    assert (found.best.tried, elsewhere(found)) == (56, 8)
    assert evaluator.measured == ["default"] * 8 + ["rewritten"] * 56


def without_scripts(name: str, seconds: float) -> BuiltVariant:
    variant = built(name, SMALL, seconds)
    (task,) = variant.model.tasks
    untunable = replace(task, dispatch=None, not_tunable="it sorts")
    return replace(variant, model=replace(variant.model, tasks=(untunable,)))


def test_where_no_variant_can_have_scripts_the_fastest_one_is_the_result_and_nothing_is_tried(
    search: Callable[..., SearchResult],
) -> None:
    evaluator = Speedups({})
    found = search([without_scripts("default", 1.0), without_scripts("O3", 0.8)], evaluator)
    assert (found.best.name, found.tried, evaluator.measured) == ("O3", 0, [])
    assert found.best.unsearched() == {}


def in_calling_thread(built: BuiltVariant, seconds: float) -> BuiltVariant:
    return replace(built, variant=built.variant.in_calling_thread(), timing=timing(seconds * 1e-3, 1 / seconds))


def test_a_variant_in_the_calling_thread_is_searched_as_on_one_core(
    search: Callable[..., SearchResult],
) -> None:
    default = built("default", SMALL, 1.0)
    found = search([default, in_calling_thread(default, 1.01)], Speedups({"default": 3.0}), cores=2)
    tried = {program.target.cores: program.tried for program in (found.best, *found.others)}
    assert tried.keys() == {1, 2}
    assert min(tried.values()) >= 8, "records of one thread say nothing of two"
    assert found.best.built.on(replace(TARGET, cores=2)).cores == found.best.target.cores


@pytest.mark.parametrize("alone", [0.6, 1.4])
def test_a_program_that_scripts_made_short_is_searched_in_the_calling_thread_too(
    alone: float, search: Callable[..., SearchResult]
) -> None:
    default = built("default", SMALL, 1.0)
    variants = [default, in_calling_thread(default, 1.06)]
    times = {"default": 1.0, "default on local-sync": alone}
    found = search(variants, Speedups({"default": 30.0}), cores=2, times=times)
    tried = {program.name: program.tried for program in (found.best, *found.others)}
    if alone < 1.0:
        assert tried == {"default": 16, "default on local-sync": 48}
        assert found.best.target.cores == 1
    else:
        assert tried == {"default": 56, "default on local-sync": 8}
        assert found.best.target.cores == 2


def test_a_short_program_is_searched_in_the_calling_thread_by_time_too(search: Callable[..., SearchResult]) -> None:
    default = built("default", SMALL, 1.0)
    variants = [default, in_calling_thread(default, 1.06)]
    evaluator = Speedups({"default": 30.0})
    times = {"default": 1.0, "default on local-sync": 0.6}
    found = search(variants, evaluator, cores=2, times=times, seconds=64)
    assert found.best.name == "default on local-sync"
    again = search(variants, Speedups({}), cores=2, times={}, seconds=64)
    assert (again.best.name, again.tried) == (found.best.name, found.tried), "a resumed run decides the same"


def test_a_program_that_stays_long_is_not_searched_in_the_calling_thread(search: Callable[..., SearchResult]) -> None:
    default = built("default", SMALL, 1.0)
    found = search([default, in_calling_thread(default, 1.06)], Speedups({"default": 3.0}), cores=2)
    assert (found.best.tried, found.others) == (64, ())


@pytest.mark.parametrize(("seconds", "tuned"), [(0.8, ["default on local-sync", "default"]), (1.2, ["default"])])
def test_a_variant_in_the_calling_thread_is_tuned_where_several_threads_save_little(
    seconds: float, tuned: list[str]
) -> None:
    default = built("default", SMALL, 1.0)
    found = tunable_variants([default, in_calling_thread(default, seconds)], SPACE, replace(TARGET, cores=2))
    assert [b.variant.name for b in found] == tuned


def test_a_close_second_gets_more_before_one_is_chosen(
    search: Callable[..., SearchResult],
) -> None:
    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.2), built("O3", ODD, 1.3)]
    evaluator = Speedups({"default": 3.0, "rewritten": lambda tried: 3.0 if tried <= 8 else 6.0, "O3": 1.0})
    found = search(variants, evaluator)
    assert found.best.name == "rewritten"
    assert evaluator.measured == (
        ["default"] * 8 + ["rewritten"] * 8 + ["O3"] * 8 + ["default"] * 8 + ["rewritten"] * 32
    )


def test_close_variants_are_told_apart_by_their_programs(
    search: Callable[..., SearchResult],
) -> None:
    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.0)]
    evaluator = Speedups({"default": 3.0, "rewritten": 2.5})
    assert search(variants, evaluator, times={"rewritten": 1.0, "default": 1.1}).best.name == "rewritten"
    again = search(variants, evaluator, times={"rewritten": 1.1, "default": 1.0})
    assert again.best.name == "rewritten", "it is remembered"


def test_of_two_processes_with_one_store_both_do_what_one_decided(
    search: Callable[..., SearchResult],
) -> None:
    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.0)]
    evaluator = Speedups({"default": 3.0, "rewritten": 2.5})
    faster: list[str] = []

    def other_process() -> None:
        found = search(variants, evaluator, times={"rewritten": 1.0, "default": 1.1})
        faster.append(found.best.name)

    times = {"rewritten": 1.1, "default": 1.0}
    found = search(variants, evaluator, times=times, meanwhile=other_process)
    assert [found.best.name, *faster] == ["rewritten"] * 2
    assert len(evaluator.measured) == 64, "nothing is measured twice"


def test_fresh_starts_at_the_same_time_have_generations_of_their_own(
    search: Callable[..., SearchResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    variants, evaluator = [built("default", SMALL, 1.0)], Speedups({"default": 1.1})
    looked: list[str] = []
    decided = RecordStore.decided

    def stale(store: RecordStore, key: str) -> object:
        """All look before the first decides."""
        looked.append(key)
        return None if len(looked) == 1 else decided(store, key)

    found: list[int] = []
    for _ in range(3):
        looked.clear()
        with monkeypatch.context() as patched:
            patched.setattr(RecordStore, "decided", stale)
            found.append(search(variants, evaluator, trials=8, fresh=True).best.run.generation)
    assert found == [1, 2, 3]
    assert search(variants, evaluator, trials=8).best.run.generation == 3
    assert len(evaluator.measured) == 3 * 8


def test_a_program_that_fails_comes_last(search: Callable[..., SearchResult]) -> None:
    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.0)]
    evaluator = Speedups({"default": 3.0, "rewritten": 2.5})
    assert search(variants, evaluator, times={"rewritten": 1.0}).best.name == "rewritten"


def test_a_variant_out_of_reach_is_dropped_at_once(
    search: Callable[..., SearchResult],
) -> None:
    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.2), built("O3", ODD, 1.3)]
    evaluator = Speedups({"default": 3.0, "rewritten": 1.1, "O3": 1.0})
    found = search(variants, evaluator)
    assert (found.best.name, found.best.tried, elsewhere(found)) == ("default", 48, 16)


def test_the_fastest_untuned_variant_keeps_the_budget_when_no_script_gains(
    search: Callable[..., SearchResult],
) -> None:
    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.2)]
    found = search(variants, Speedups({"default": 1.0, "rewritten": 1.0}))
    assert (found.best.name, found.best.tried, elsewhere(found)) == ("default", 56, 8)


def test_a_small_budget_goes_to_the_fastest_untuned_variant_alone(
    search: Callable[..., SearchResult],
) -> None:
    variants = [built("default", SMALL, 1.0), built("O3", LARGE, 0.5)]
    evaluator = Speedups({"default": 9.0, "O3": 1.0})
    assert search(variants, evaluator, trials=24).best.name == "O3"
    assert set(evaluator.measured) == {"O3"}


def test_what_a_small_space_leaves_of_the_budget_goes_to_contenders_that_had_none(
    search: Callable[..., SearchResult],
) -> None:
    variants = [
        built("tiny", matmul_dispatch(1, 2, 2), 1.0),
        built("default", SMALL, 1.5),
        built("rewritten", LARGE, 1.6),
    ]
    evaluator = Speedups({"tiny": 1.0, "default": 1.1, "rewritten": 9.0})
    found = search(variants, evaluator, trials=32)
    assert found.best.name == "rewritten"
    assert evaluator.measured.count("default") == 8
    assert found.best.tried == evaluator.measured.count("rewritten") == 32 - 8 - evaluator.measured.count("tiny")


def test_an_interrupted_search_goes_on_as_if_it_had_not_been(
    search: Callable[..., SearchResult],
) -> None:
    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.2)]
    speedups = {"default": 1.1, "rewritten": 5.0}
    for stop_after in (5, 12, 10):
        found = search(variants, Speedups(speedups, stop_after))
        assert found.interrupted
    evaluator = Speedups(speedups)
    noisier = [variants[0], built("rewritten", LARGE, 0.9)]  # what was decided does not depend on a second timing
    found = search(noisier, evaluator)
    assert (found.best.name, found.best.tried, elsewhere(found)) == ("rewritten", 56, 8)
    assert len(evaluator.measured) == 64 - 5 - 12 - 10


def test_ctrl_c_while_programs_are_timed_ends_the_search_with_the_one_that_is_expected_to_be_fastest(
    search: Callable[..., SearchResult],
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.0)]
    evaluator = Speedups({"default": 2.5, "rewritten": 3.0})
    stopped = search(variants, evaluator, times={"default": 1.0}, meanwhile=interrupt)
    assert (stopped.best.name, stopped.tried, stopped.interrupted) == ("rewritten", 16, True)
    found = search(variants, evaluator, times={"default": 1.0})
    assert (found.best.name, found.tried, found.interrupted) == ("default", 64, False)


def test_a_run_by_time_that_was_interrupted_measures_what_an_uninterrupted_one_does(
    search: Callable[..., SearchResult],
) -> None:
    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.2), built("O3", ODD, 1.3)]
    speedups = {"default": 3.0, "rewritten": 4.0, "O3": 1.0}
    whole = Speedups(speedups)
    found = search(variants, whole, seconds=60, name="whole.sqlite")
    assert 60 <= len(whole.measured) < 68
    parts: list[str] = []
    for stop_after in (5, 12, 10, 8, None):
        part = Speedups(speedups, stop_after)
        resumed = search(variants, part, seconds=60)
        parts += part.measured
        assert resumed.interrupted == (stop_after is not None)
    assert parts == whole.measured
    assert (resumed.best.name, resumed.best.tried, elsewhere(resumed)) == (
        found.best.name,
        found.best.tried,
        elsewhere(found),
    )
    repeated = Speedups(speedups)
    search(variants, repeated, seconds=60)
    assert repeated.measured == []


def test_more_time_is_added_to_what_was_spent(search: Callable[..., SearchResult]) -> None:
    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.2)]
    evaluator = Speedups({"default": 3.0, "rewritten": 1.0})
    search(variants, evaluator, seconds=48)
    more = Speedups({"default": 3.0, "rewritten": 1.0})
    search(variants, more, seconds=80)
    assert len(evaluator.measured) == 48
    assert 32 <= len(more.measured) < 40


FLAT: Mapping[str, Factor] = {"default": 3.0, "rewritten": 2.5}
BUDGETS: Sequence[Mapping[str, Any]] = ({"trials": 64}, {"seconds": 64})


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_search_ends_once_the_next_minute_is_expected_to_save_too_little(
    budget: Mapping[str, Any], search: Callable[..., SearchResult]
) -> None:
    """With a candidate per second 19 % is expected of a flat course after 24 candidates, and 36 % after 16."""
    share = (IMPROVEMENTS * GUESS / math.log2(24 / 8) + DOUBT) * math.log2(1 + 60 / 24)
    found = search([built("default", SMALL, 1.0)], Speedups(FLAT), stop_below=0.2, **budget)
    assert (found.tried, found.ended_early) == (24, TOO_LITTLE.format(100 * share, 20.0))
    rising = Speedups({"default": lambda tried: 2.0 ** (tried / 8)})
    found = search([built("default", SMALL, 1.0)], rising, stop_below=0.2, name="rising.sqlite", **budget)
    assert (found.tried >= 64, found.ended_early) == (True, "")
    assert search([built("default", SMALL, 1.0)], Speedups(FLAT), name="whole.sqlite", **budget).tried >= 64


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_resumed_search_ends_where_it_was_decided_and_says_the_same(
    budget: Mapping[str, Any], search: Callable[..., SearchResult]
) -> None:
    class Slow(Speedups):
        """Takes longer, so that a minute has fewer candidates, of which less is expected."""

        def evaluate(self, *args: Any) -> Iterator[tuple[int, Outcome]]:
            for found in super().evaluate(*args):
                self.now_s += 9
                yield found

    variants = [built("default", SMALL, 1.0)]
    assert search(variants, Speedups(FLAT, stop_after=19), stop_below=0.2, **budget).ended_early == ""
    found = search(variants, Speedups(FLAT), stop_below=0.2, **budget)
    assert found.tried == 24
    for evaluator in Speedups(FLAT), Slow(FLAT):
        again = search(variants, evaluator, stop_below=0.2, **budget)
        assert (again.tried, again.ended_early, evaluator.measured) == (24, found.ended_early, [])
    further = Speedups(FLAT)
    assert search(variants, further, stop_below=0.01, **budget).tried == 24 + len(further.measured) > 24


def test_no_program_gets_what_is_left_when_too_little_is_expected_of_the_best(
    search: Callable[..., SearchResult],
) -> None:
    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.0), built("O3", ODD, 2.0)]
    evaluator = Speedups({"default": 3.0, "rewritten": 2.5, "O3": 1.0})
    found = search(variants, evaluator, trials=2000, stop_below=0.2)
    assert (found.best.name, elsewhere(found)) == ("default", found.best.tried + 16)
    assert found.best.tried == 24, "and the program of which half cannot have scripts has fewer"
    few = search(variants, Speedups(FLAT), trials=31, stop_below=0.2, name="few.sqlite")
    assert (few.best.tried, elsewhere(few)) == (24, 0), "the others are not explored with few trials"


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_search_that_has_tried_everything_says_so_and_so_does_one_that_is_repeated(
    budget: Mapping[str, Any], search: Callable[..., SearchResult]
) -> None:
    tiny = [built("default", matmul_dispatch(1, 2, 2), 1.0)]
    found = search(tiny, Speedups(FLAT), **budget)
    assert (found.ended_early, found.tried < 64) == (NOTHING_LEFT, True)
    assert search(tiny, Speedups(FLAT), **budget).ended_early == NOTHING_LEFT
    assert search(tiny, Speedups(FLAT), trials=found.tried).ended_early == "", "the trials are spent"


def test_another_machine_decides_for_itself(
    search: Callable[..., SearchResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    variants = [built("default", SMALL, 1.0), built("rewritten", LARGE, 1.0)]
    speedups = {"default": 3.0, "rewritten": 2.5}
    assert search(variants, Speedups(speedups), times={"rewritten": 1.0}).best.name == "rewritten"
    monkeypatch.setitem(globals(), "TARGET", replace(TARGET, machine=(("cpu", "another"),)))
    assert search(variants, Speedups(speedups), times={"default": 1.0}).best.name == "default"


def test_of_variants_with_the_same_dispatches_the_fastest_is_tuned() -> None:
    default, same, other = built("default", SMALL, 1.0), built("O3", SMALL, 0.7), built("rewritten", LARGE, 3.0)
    assert [b.variant.name for b in tunable_variants([default, same, other], SPACE, TARGET)] == ["O3", "rewritten"]
    hardly = built("O3", SMALL, 0.99)
    assert [b.variant.name for b in tunable_variants([default, hardly], SPACE, TARGET)] == ["default"]


def refining(built: BuiltVariant, other: str) -> BuiltVariant:
    plan = Plan((Named(other), Slow(built.variant.name)))
    return replace(built, variant=Variant(plan, RewriteScript(plan.name, "rewrite", "")))


def test_a_refined_variant_is_tuned_in_the_place_of_the_variant_that_it_refines() -> None:
    default, layout, other = built("default", SMALL, 1.0), built("layout", ODD, 0.8), built("rewritten", LARGE, 0.9)
    slow = refining(built("refined", LARGE, 5.0), "layout")
    tuned = tunable_variants([default, layout, slow], SPACE, TARGET)
    assert [b.variant.name for b in tuned] == ["layout+refined", "default"]
    tuned = tunable_variants([default, layout, other], SPACE, TARGET)
    assert [b.variant.name for b in tuned] == ["layout", "rewritten", "default"]
    of_use = with_tunable_time([slow, default, other], SPACE, TARGET)
    assert [b.variant.name for b in of_use] == ["layout+refined", "rewritten"]
    assert with_tunable_time([default, other], SPACE, TARGET) == [default, other]


def test_the_default_is_not_tuned_where_another_variant_is_far_faster_without_scripts() -> None:
    default, layout = built("default", SMALL, 1.0), built("layout", LARGE, 0.2)
    assert [b.variant.name for b in tunable_variants([default, layout], SPACE, TARGET)] == ["layout"]
    slow = refining(built("refined", ODD, 5.0), "layout")
    assert [b.variant.name for b in tunable_variants([default, layout, slow], SPACE, TARGET)] == ["layout+refined"]


@pytest.mark.parametrize(("share", "tuned"), [(0.1, ["rewritten"]), (0.6, ["packed by IREE", "rewritten"])])
def test_a_variant_with_little_time_in_tunable_dispatches_is_not_tuned_by_time(
    share: float, tuned: list[str], search: Callable[..., SearchResult]
) -> None:
    def shared(variant: BuiltVariant, share: float) -> BuiltVariant:
        (task,) = variant.model.tasks
        other = replace(task, name="another", key="another", dispatch=None)
        profile = ProgramProfile({task.name: share, other.name: 1 - share}, {task.name: 1, other.name: 1})
        return replace(variant, model=replace(variant.model, tasks=(task, other)), profile=profile)

    variants = [shared(built("packed by IREE", SMALL, 1.0), share), shared(built("rewritten", LARGE, 1.2), 0.9)]
    evaluator = Speedups({"packed by IREE": 1.5, "rewritten": 3.0})
    search(variants, evaluator, seconds=48)
    assert list(dict.fromkeys(evaluator.measured)) == tuned
    assert with_tunable_time(variants[:1], SPACE, TARGET) == variants[:1]
