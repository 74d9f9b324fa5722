"""Other algorithms for parts of a program are tried beside it, and used where they pay."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from plans import convolution_sites, flagged
from replayed_run import METHOD, TARGET, Heard, matmul_dispatch, task_of, turns_of
from speedups import Speedups, timing

from mlir_sched.compiler import ModelCompileError
from mlir_sched.database import RecordStore
from mlir_sched.payload import Dispatch
from mlir_sched.processes.child import ChildCrashError
from mlir_sched.program.plan import Site
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.other_algorithms import Algorithms, OtherAlgorithm
from mlir_sched.program.variants.weight_bound import NO_BOUND, WeightBound
from mlir_sched.space.space import Space
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.algorithm_choice import (
    LEAST_GAIN,
    LEAST_SHARE,
    NO_SCRIPTS,
    NOT_MEASURED,
    NOT_TIMED,
    OTHERS,
    SMALL_SHARE,
    AlgorithmChoice,
    above_together,
)
from mlir_sched.tuning.budget import ALGORITHMS_CANDIDATES, Budget, SearchProgress
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.program_search import NO_TIME_TO_MEASURE
from mlir_sched.tuning.tuning_run import TuningRun
from mlir_sched.tuning.variant_search import SearchResult, VariantSearch

REST = task_of("rest", matmul_dispatch(64, 96, 32))
DIRECT = replace(task_of("direct", matmul_dispatch(128, 64, 48)), weight=2)
PRODUCTS = replace(task_of("products", matmul_dispatch(60, 84, 36)), weight=2)
SPACE = Space.default(TARGET)
(SITE,), NAME = convolution_sites("8x8x32x32"), "winograd(8x8x32x32)"


def built(name: str, *tasks: Task) -> BuiltVariant:
    model = Model("model.mlir", (), tasks, ())
    return BuiltVariant(flagged(name), model, b"", timing(1e-3 * sum(task.weight for task in tasks), 1.0), ())


PROGRAM, COMPOSED = built("channels_last", REST, DIRECT), built("composed", REST, replace(PRODUCTS, name="moved"))

BOUND = WeightBound(100)


@dataclass
class Planned:
    """An algorithm that replaces the direct convolutions by products.

    Attributes:
        error: The compiler's error on the composed program.
        crash: The compiler's error on the program's alternatives.
        made: The tasks that it brings.
        further_bytes: Bytes of weights that calls read more with it.
        composed: The program with it.
        wrong: Whether the composed program gives other numbers.
    """

    error: str = ""
    crash: str = ""
    made: tuple[Task, ...] = (PRODUCTS,)
    further_bytes: int = 0
    composed: BuiltVariant = COMPOSED
    wrong: bool = False
    asked: list[Sequence[Site]] = field(default_factory=list)

    def alternatives(self, program: BuiltVariant) -> tuple[OtherAlgorithm, ...]:
        assert program is PROGRAM
        if self.crash:
            raise ChildCrashError(self.crash)
        return (OtherAlgorithm(SITE, {DIRECT.key: 2}, self.made, self.further_bytes),)

    def compose(self, program: BuiltVariant, sites: Sequence[Site]) -> BuiltVariant:
        assert program is PROGRAM
        self.asked.append(sites)
        if self.error:
            raise ModelCompileError(self.error)
        return replace(self.composed, timing=None) if self.wrong else self.composed


@pytest.fixture
def search(tmp_path: Path) -> Callable[..., SearchResult]:
    """Return a function that runs the search of the program in one store."""

    def run(evaluator: Speedups, planned: Planned, trials: int = 96, *, bound: WeightBound = NO_BOUND) -> SearchResult:
        most = None if math.isinf(bound.most_bytes) else 1.2
        options = TuneOptions(trials=trials, round_size=8, max_weights=most)
        with RecordStore.open(tmp_path / "records.sqlite") as store:
            run = TuningRun.of(options, TARGET, SPACE, store, [PROGRAM], start=0.0, method=METHOD)
            choice = AlgorithmChoice(run, cast(Algorithms, planned), bound)
            search = VariantSearch.of(run, [PROGRAM], Heard(), lambda _: {}, choice)
            return turns_of(search, lambda _: cast(Any, nullcontext(evaluator)))

    return run


def speedups(products: float, stop_after: int | None = None) -> Speedups:
    factors = {"rest": 1.5, "direct": 2.0, "products": products, "moved": products}
    return Speedups(factors, stop_after)


def test_an_algorithm_whose_dispatches_are_faster_is_used(search: Callable[..., SearchResult]) -> None:
    evaluator, planned = speedups(10.0), Planned()
    found = search(evaluator, planned)
    assert found.best.built is COMPOSED
    assert planned.asked == [[SITE]]
    assert found.algorithms == pytest.approx({NAME: 5.0})
    assert not found.left_out
    assert not found.others
    assert found.tried == len(evaluator.measured) == 96, "nothing was tried twice, and nothing is forgotten"
    assert {s.task.name for s in found.best.searches} == {"rest", "moved"}
    (products,) = (s for s in found.best.searches if s.task.name == "moved")
    assert products.tried > evaluator.measured.count("moved"), "it goes on where the search beside the program was"


def test_an_algorithm_whose_dispatches_are_slower_is_left_out(search: Callable[..., SearchResult]) -> None:
    evaluator, planned = speedups(1.6), Planned()
    found = search(evaluator, planned)
    assert found.best.built is PROGRAM
    assert planned.asked == []
    assert found.left_out == {NAME: "its dispatches take 250 us more per run"}
    assert found.algorithms == pytest.approx({NAME: 0.8})
    assert {s.task.name for s in found.best.searches} == {"rest", "direct"}
    assert found.tried == len(evaluator.measured) == 96
    assert "products" not in evaluator.measured[60:], "the rest of the budget is for the program's own dispatches"


def test_until_algorithms_are_chosen_only_the_dispatches_that_differ_are_searched(
    search: Callable[..., SearchResult],
) -> None:
    evaluator = speedups(1.6)
    search(evaluator, Planned())
    first = evaluator.measured[: 2 * ALGORITHMS_CANDIDATES]
    assert set(first) == {"direct", "products"}
    assert "rest" in evaluator.measured[len(first) :][:16]


def test_a_gain_within_what_a_program_changes_is_not_enough(search: Callable[..., SearchResult]) -> None:
    found = search(speedups(2.0 / (1 - LEAST_GAIN / 2)), Planned())
    assert found.best.built is PROGRAM
    assert found.left_out == {NAME: "its dispatches take only 25 us less per run"}


def test_an_algorithm_with_a_dispatch_that_can_have_no_script_is_left_out(search: Callable[..., SearchResult]) -> None:
    without = replace(PRODUCTS, key="without", dispatch=Dispatch((), (), ("tensor.pack",)))
    found = search(speedups(10.0), Planned(made=(PRODUCTS, without)))
    assert found.best.built is PROGRAM
    assert found.left_out == {NAME: NO_SCRIPTS}


def test_a_program_with_other_numbers_is_left_out(search: Callable[..., SearchResult]) -> None:
    found = search(speedups(10.0), Planned(wrong=True))
    assert found.best.built is PROGRAM
    assert found.left_out == {NAME: NOT_TIMED}


def test_a_program_that_iree_does_not_compile_is_left_out(search: Callable[..., SearchResult]) -> None:
    found = search(speedups(10.0), Planned("the stack is exceeded"))
    assert found.best.built is PROGRAM
    assert found.left_out == {NAME: "the stack is exceeded"}


def test_a_crash_of_the_compiler_costs_the_algorithms_and_not_the_run(search: Callable[..., SearchResult]) -> None:
    evaluator = speedups(10.0)
    found = search(evaluator, Planned(crash="the compiler process was killed by SIGSEGV"))
    assert found.best.built is PROGRAM
    assert found.left_out == {OTHERS: "the compiler process was killed by SIGSEGV"}
    assert len(evaluator.measured) == 96


def test_an_algorithm_with_an_unmeasured_dispatch_is_left_out(
    search: Callable[..., SearchResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlir_sched.tuning.program_search.ProgramSearch.call_s", lambda _: {DIRECT.key: 1.0})
    found = search(speedups(10.0), Planned())
    assert (found.left_out, found.algorithms) == ({NAME: NOT_MEASURED}, {})


@pytest.mark.parametrize(("share", "tried"), [(LEAST_SHARE / 2, False), (2 * LEAST_SHARE, True)])
def test_an_algorithm_for_a_light_part_is_not_tried(
    search: Callable[..., SearchResult], monkeypatch: pytest.MonkeyPatch, share: float, tried: bool
) -> None:
    call_s = {REST.key: (1 - share) / REST.weight, DIRECT.key: share / DIRECT.weight}
    monkeypatch.setattr("mlir_sched.tuning.program_search.ProgramSearch.reachable_s", lambda _: call_s)
    evaluator = speedups(10.0)
    found = search(evaluator, Planned())
    assert found.best.built is (COMPOSED if tried else PROGRAM)
    assert found.left_out == ({} if tried else {NAME: SMALL_SHARE})
    assert ("products" in evaluator.measured) is tried


def test_an_algorithm_with_larger_weights_than_allowed_is_not_tried(search: Callable[..., SearchResult]) -> None:
    evaluator, planned = speedups(10.0), Planned(further_bytes=200)
    found = search(evaluator, planned, bound=BOUND)
    assert found.best.built is PROGRAM
    assert found.left_out == {NAME: BOUND.why_above(PROGRAM.model, 200)}
    assert planned.asked == []
    assert "products" not in evaluator.measured


def test_a_composed_program_with_larger_weights_than_its_algorithms_is_left_out(
    search: Callable[..., SearchResult],
) -> None:
    large = replace(COMPOSED, model=replace(COMPOSED.model, weight_bytes=101))
    found = search(speedups(10.0), Planned(further_bytes=99, composed=large), bound=BOUND)
    assert found.best.built is PROGRAM
    assert found.left_out == {NAME: BOUND.why_above(large.model)}


def test_runs_with_and_without_a_bound_decide_on_their_own(tmp_path: Path) -> None:
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        keys = [
            TuningRun.of(options, TARGET, SPACE, store, [PROGRAM], start=0.0, method=METHOD).key
            for options in (TuneOptions(), TuneOptions(max_weights=1.0), TuneOptions(max_weights=1.5))
        ]
    assert len({*keys}) == 3


def test_within_a_bound_the_algorithms_that_save_most_per_byte_are_used() -> None:
    sizes = {"8x8x8x8": (60, 0.5), "8x8x16x16": (50, 3.0), "8x8x32x32": (-20, 0.1), "8x8x64x64": (70, 1.0)}
    found = [
        OtherAlgorithm(site, {site.shape: 1}, (), size)
        for site, (size, _) in zip(convolution_sites(*sizes), sizes.values(), strict=True)
    ]
    call_s = {shape: saved_s for shape, (_, saved_s) in sizes.items()}
    why = above_together(found, call_s, BOUND, PROGRAM.model)
    assert set(why) == {"8x8x8x8"}, "-20, 50 and 70 bytes are 100 together"
    assert above_together(found, call_s, NO_BOUND, PROGRAM.model) == {}


def test_a_small_budget_tries_no_other_algorithm(search: Callable[..., SearchResult]) -> None:
    evaluator = speedups(10.0)
    assert search(evaluator, Planned(), trials=31).best.built is PROGRAM
    assert "products" not in evaluator.measured


def test_interrupted_while_algorithms_are_tried_the_program_stays_as_it_is(
    search: Callable[..., SearchResult],
) -> None:
    found = search(speedups(10.0, stop_after=30), Planned())
    assert found.interrupted
    assert found.best.built is PROGRAM
    assert {s.task.name for s in found.best.searches} == {"direct"}
    assert found.best.unsearched() == {REST.key: NO_TIME_TO_MEASURE}


def test_a_resumed_run_makes_the_same_choice(search: Callable[..., SearchResult]) -> None:
    whole = search(speedups(10.0), Planned())
    again, evaluator = Planned(), speedups(0.5)
    found = search(evaluator, again)
    assert evaluator.measured == []
    assert again.asked == [[SITE]]
    assert [s.history.best_trace() for s in found.best.searches] == [
        s.history.best_trace() for s in whole.best.searches
    ]


@pytest.mark.parametrize(("left_s", "afforded"), [(31.0, True), (29.0, False)])
def test_by_time_algorithms_are_tried_where_time_is_left(left_s: float, afforded: bool) -> None:
    budget = Budget(8, None, seconds=100.0 + left_s, begun_s=20.0)
    assert budget.affords_algorithms(tried=40, tasks=5, now_s=100.0, algorithms_s=20.0) is afforded  # 2 s per candidate
    assert not budget.affords_algorithms(tried=0, tasks=5, now_s=100.0, algorithms_s=0.0), "no pace is known"
    part = budget.algorithms(share=0.4, tasks=3, own=5, elsewhere=7, now_s=100.0)
    assert (part.until_s, part.most) == (100.0 + left_s / 2, 5 + 3 * ALGORITHMS_CANDIDATES)
    assert [part.next_round(SearchProgress(tried, 100.0, 3, reached=True, begun=False)) for tried in (5, 50, 53)] == [
        8,
        3,
        0,
    ]


def test_algorithms_for_little_of_the_time_get_little_of_what_is_left() -> None:
    by_time, by_trials = Budget(8, None, seconds=200.0, begun_s=20.0), Budget(8, 205)
    for share, part in ((0.1, 0.2), (0.25, 0.5), (0.9, 0.5)):
        found = by_time.algorithms(share=share, tasks=30, own=5, elsewhere=0, now_s=100.0)
        assert found.until_s == pytest.approx(100.0 + 100.0 * part)
        assert by_trials.algorithms(share=share, tasks=30, own=5, elsewhere=0, now_s=0.0).trials == 5 + 200 * part
    assert by_trials.algorithms(share=0.01, tasks=30, own=5, elsewhere=0, now_s=0.0).trials == 5 + 8, "a round at least"


@pytest.mark.parametrize(("share", "worth"), [(0.04, False), (0.06, True)])
def test_a_program_is_composed_where_its_algorithms_may_gain_what_that_takes(share: float, worth: bool) -> None:
    by_time = Budget(8, None, seconds=200.0, begun_s=20.0)
    assert by_time.is_worth_composing(share=share, now_s=100.0, composing_s=10.0) is worth
    assert Budget(8, 64).is_worth_composing(share=share, now_s=100.0, composing_s=10.0)
