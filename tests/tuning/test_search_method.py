"""Parts of the search that users bring: by name from other distributions, or as objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from replayed_run import QUICK, matmul_dispatch, program_search, searched, task_of
from task_searches import AtOnce

from mlir_sched import plugins
from mlir_sched.database import RecordStore
from mlir_sched.errors import UserError
from mlir_sched.models import CostModel, Measured, RandomModel, Rows, SharedCostModel, XGBoostModel, XGBoostOptions
from mlir_sched.plugins import ExtraPart, PluginGroup
from mlir_sched.search import EvolutionarySearch, GradientScheduler, RandomSearch, TaskProgress
from mlir_sched.testing.strategies import SPACE
from mlir_sched.trace import Trace
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.search_method import SearchMethod


class Same(RandomSearch):
    """Draws as random search does."""


class Broken(RandomSearch):
    """Raises where candidates are asked for."""

    def propose(self, count: int) -> list[Trace]:
        raise ZeroDivisionError(f"no {count} candidates")


class Told(XGBoostModel):
    """Keeps what it is told."""

    seen: list[Rows] = []  # noqa: RUF012 - of all models

    def fit(self, tasks: Sequence[Measured]) -> None:
        self.seen += [each.rows for each in tasks]
        super().fit(tasks)

    def predict_with_spread(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        self.seen.append(rows)
        return super().predict_with_spread(rows)


def three(*_: object) -> int:
    """Return no part of a search."""
    return 3


class Last:
    """Gives each round to the last task that is not exhausted."""

    key = "last"

    def next_task(self, tasks: Sequence[TaskProgress]) -> int | None:
        """Return its index."""
        return max((index for index, task in enumerate(tasks) if not task.exhausted), default=None)


def method(strategy: object = "random", cost_model: object = "xgboost", scheduler: object = "gradient") -> SearchMethod:
    return SearchMethod.of(strategy, cost_model, scheduler)  # type: ignore[arg-type]


def search(folder: Path, chosen: SearchMethod, trials: int = 24) -> ProgramSearch:
    tasks = [task_of("first", matmul_dispatch(64, 96, 32)), task_of("second", matmul_dispatch(128, 64, 48))]
    with RecordStore.open(folder / "records.sqlite") as store:
        options = TuneOptions(trials=trials, round_size=8)
        return searched(program_search(options, store, tasks, method=chosen), AtOnce())


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that registers things of this file as entry points of a group."""

    def register(group: str, **values: str) -> None:
        entries = [EntryPoint(name, f"{__name__}:{value}", group) for name, value in values.items()]
        monkeypatch.setattr(plugins, "entry_points", lambda group: [e for e in entries if e.group == group])

    return register


def test_names_and_objects_give_the_same_method() -> None:
    assert method("evolutionary").key() == SearchMethod().key()
    assert method(RandomSearch, XGBoostOptions(), GradientScheduler()).key() == method().key()


def test_every_part_makes_another_run() -> None:
    parts = [method(), method(Same), method(QUICK), method(cost_model=RandomModel), method(scheduler=Last())]
    parts.append(method(cost_model=XGBoostOptions(members=8)))
    assert len({repr(part.key()) for part in parts}) == len(parts)


@pytest.mark.parametrize(("group", "what"), [("strategies", "strategy"), ("cost_models", "cost_model")])
def test_what_distributions_register_is_found_by_name(group: str, what: str, registered: Callable[..., None]) -> None:
    registered(f"mlir_sched.{group}", mine="Same")
    assert getattr(method(**{what: "mine"}), what) is Same


def test_a_scheduler_is_registered_as_a_class_or_as_an_object(registered: Callable[..., None]) -> None:
    registered("mlir_sched.schedulers", mine="Last")
    assert isinstance(method(scheduler="mine").scheduler, Last)


@pytest.mark.parametrize(
    ("registration", "name", "complaint"),
    [
        ({"mine": "Same"}, "other", "unknown search strategy 'other'; known are evolutionary, random, mine"),
        ({"mine": "Missing"}, "mine", r"strategy 'mine' \(.*Missing\) cannot be loaded: AttributeError.*uninstall"),
    ],
)
def test_what_cannot_be_had_is_one_line(
    registration: dict[str, str], name: str, complaint: str, registered: Callable[..., None]
) -> None:
    registered("mlir_sched.strategies", **registration)
    with pytest.raises(UserError, match=complaint):
        method(name)


def test_an_unknown_scheduler_is_refused_with_the_names_of_those_there_are() -> None:
    with pytest.raises(UserError, match="unknown task scheduler 'fair'; known are gradient, round-robin"):
        method(scheduler="fair")


def test_a_distribution_that_cannot_be_loaded_harms_no_other_part(registered: Callable[..., None]) -> None:
    registered("mlir_sched.strategies", broken="Missing", random="Broken")
    assert method("random").strategy is RandomSearch


def test_a_part_that_needs_an_extra_is_loaded_when_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_package.py").write_text('raise OSError("libtorch.so: cannot open shared object file")')
    monkeypatch.syspath_prepend(tmp_path)
    modules = {"ready": __name__, "missing": "no_such_package", "broken": "broken_package"}
    parts = {name: ExtraPart(module, "Same", "more") for name, module in modules.items()}
    group = PluginGroup("mlir_sched.none", "search strategy", {"random": RandomSearch}, parts)
    assert group.names() == ("random", "ready", "missing", "broken")
    assert group.named("ready") is Same
    for name, why in (("missing", "no_such_package"), ("broken", r"libtorch\.so")):
        with pytest.raises(UserError, match=rf"'{name}' needs packages .*{why}.*pip install 'mlir-sched\[more\]'"):
            group.named(name)


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        ({"strategy": lambda space, rng, _: RandomSearch(space, rng)}, "needs a key"),
        ({"cost_model": lambda: XGBoostModel()}, "needs a key"),
        ({"scheduler": 3}, "3 is no task scheduler"),
    ],
)
def test_a_part_that_stores_cannot_name_is_refused_before_the_search(part: dict[str, object], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        method(**part)


def test_what_makes_something_else_is_refused() -> None:
    with pytest.raises(UserError, match="which is no SearchStrategy"):
        method(three).strategy_for(SPACE, SharedCostModel(RandomModel()), 0, 0)
    with pytest.raises(UserError, match="which is no CostModel"):
        method(cost_model=three).shared_model()


def test_a_part_that_raises_is_named_with_the_line_and_keeps_what_was_measured(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"strategy \S+Broken raised ZeroDivisionError: no 8 .*test_search_method.py:\d+"
    ):
        search(tmp_path, method(Broken))


def test_our_own_mistakes_are_not_blamed_on_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RandomSearch, "propose", Broken.propose)
    with pytest.raises(ZeroDivisionError):
        search(tmp_path, method())


def test_a_cost_model_is_told_the_task_of_every_row(tmp_path: Path) -> None:
    Told.seen.clear()
    found = search(tmp_path, SearchMethod(QUICK, Told), trials=48)
    told = {rows.task.group: rows.task for rows in Told.seen}
    assert len(told) == 2
    by_dispatch = {str(task.dispatch): task.target for task in told.values()}
    assert by_dispatch == {str(task.dispatch): found.target for task in found.tasks}
    assert issubclass(Told, CostModel)


def test_a_scheduler_decides_which_task_is_next(tmp_path: Path) -> None:
    found = search(tmp_path, method(scheduler=Last()))
    assert [each.tried for each in found.searches] == [0, 24]


def test_tasks_take_turns_where_the_user_says_so_by_name(tmp_path: Path) -> None:
    found = search(tmp_path, method(scheduler="round-robin"), trials=40)
    assert [each.tried for each in found.searches] == [20, 20]


def test_a_resumed_search_with_the_same_parts_goes_on(tmp_path: Path) -> None:
    first, again = (search(tmp_path, SearchMethod(QUICK, Told, Last())) for _ in range(2))
    assert (sum(s.measured for s in first.searches), sum(s.measured for s in again.searches)) == (24, 0)
    assert isinstance(first.searches[0].strategy, EvolutionarySearch)
