"""Runs without a search: what may be asked of them, what bounds them, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mlir_sched.errors import UserError
from mlir_sched.models import QuantileModel, RandomModel
from mlir_sched.search import Acquisition, EvolutionaryOptions, GradientScheduler, RandomSearch, TaskProgress
from mlir_sched.trace import Trace
from mlir_sched.tuned_folder.transferred import OneShotResult
from mlir_sched.tuning.budget import FINALISTS_SHARE, LEAST_FINALISTS_S, PICKS, Budget
from mlir_sched.tuning.ledger import End
from mlir_sched.tuning.one_shot import require_candidates, without_search
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.search_method import SearchMethod

OPTIONS = TuneOptions(trials=0)


def test_a_budget_without_a_search_is_a_few_candidates_per_task_and_bounds_the_finalists() -> None:
    assert Budget.of(OPTIONS, tasks=4, begun_s=0.0).trials == 4 * PICKS
    assert Budget.of(replace(OPTIONS, check_only=True), tasks=1, begun_s=0.0).trials == 4 * PICKS
    assert Budget.of(OPTIONS, tasks=0, begun_s=0.0).trials == PICKS
    many, one = (Budget.of(OPTIONS, tasks=40, begun_s=0.0, end=End(9.0, reports_s)) for reports_s in (80.0, 2.0))
    assert many.finalists_s(1e6, 9.0) == FINALISTS_SHARE * 80.0
    assert one.finalists_s(1e6, 9.0) == LEAST_FINALISTS_S
    by_time = Budget.of(TuneOptions(trials=0, minutes=1.0), tasks=3, begun_s=5.0, end=End(9.0, 6.0))
    assert (by_time.trials, by_time.seconds) == (None, 60.0 - 9.0 - 6.0)


def test_without_a_search_what_is_known_is_used_unless_it_is_switched_off() -> None:
    assert (OPTIONS.begins_from, OPTIONS.uses_templates) == ("auto", True)
    assert (TuneOptions().begins_from, TuneOptions().uses_templates) == ("off", False)
    assert replace(OPTIONS, transfer="off", templates=False).begins_from == "off"
    assert TuneOptions(trials=0, minutes=1.0).is_one_shot
    same = TuneOptions(trials=8, transfer="auto", templates=True)
    assert same.search_key() != OPTIONS.search_key(), "a search does not take the choice for its own first round"
    with pytest.raises(UserError, match="not both"):
        TuneOptions(trials=1, minutes=1.0)


def test_where_nothing_is_left_to_choose_from_that_is_said() -> None:
    off = replace(OPTIONS, transfer="off", templates=False)
    with pytest.raises(UserError, match="nothing is left to choose from"):
        require_candidates(off, (), modelled=False)
    require_candidates(off, [Trace("sketch", ())], modelled=False)
    require_candidates(off, (), modelled=True)
    for options in (replace(off, templates=True), replace(off, transfer="auto")):
        require_candidates(options, (), modelled=False)


def test_the_mean_prediction_alone_chooses_whatever_a_search_would_look_for() -> None:
    asked = EvolutionaryOptions(population=64, acquisition=Acquisition.UNCERTAINTY)
    chosen = without_search(SearchMethod(asked)).strategy
    assert chosen == EvolutionaryOptions(population=64, random_share=0.0, acquisition=Acquisition.MEAN)


class Turns(GradientScheduler):
    """Another rule for the turns of dispatches, in the same class of rules."""


class First:
    """Every round is the first dispatch's."""

    key = "first"

    def next_task(self, tasks: Sequence[TaskProgress]) -> int | None:
        return None if tasks[0].exhausted else 0


@pytest.mark.parametrize(
    ("method", "why"),
    [
        (SearchMethod(RandomSearch), "the search strategy .*RandomSearch has no use"),
        (SearchMethod(cost_model=RandomModel), "the cost model .*RandomModel has no use"),
        (SearchMethod(scheduler=First()), "the task scheduler first has no use"),
    ],
)
def test_a_part_that_has_no_say_is_refused(method: SearchMethod, why: str) -> None:
    with pytest.raises(UserError, match=why):
        without_search(method)
    without_search(SearchMethod(cost_model=QuantileModel, scheduler=Turns()))


def test_words_without_the_cost_model_say_nothing_of_it() -> None:
    assert OneShotResult(1, 0, {"templates": 3}, None).words == "no search: 3 candidates of 1 dispatch (templates: 3)"
