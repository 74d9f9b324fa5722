"""The parts that choose candidates: a search strategy, a cost model and a task scheduler, by name or as objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from mlir_sched.errors import MlirSchedError, UserError
from mlir_sched.models import CostModel, QuantileModel, RandomModel, SharedCostModel, XGBoostOptions
from mlir_sched.models.cost_model import CostModelFactory
from mlir_sched.plugins import ExtraPart, PluginGroup, key_of, origin_of
from mlir_sched.search import (
    EvolutionaryOptions,
    GradientScheduler,
    RandomSearch,
    RoundRobinScheduler,
    SearchSpace,
    SearchStrategy,
    StrategyFactory,
    TaskScheduler,
)

T = TypeVar("T")

STRATEGIES = PluginGroup[StrategyFactory](
    "mlir_sched.strategies", "search strategy", {"evolutionary": EvolutionaryOptions(), "random": RandomSearch}
)
COST_MODELS = PluginGroup[CostModelFactory](
    "mlir_sched.cost_models",
    "cost model",
    {"xgboost": XGBoostOptions(), "quantile": QuantileModel, "random": RandomModel},
    {
        "gaussian-process": ExtraPart("mlir_sched.models.gaussian_process", "MultitaskGaussianProcess", "gp"),
        "graph": ExtraPart("mlir_sched.models.graph_model", "GraphModel", "gnn"),
    },
)
SCHEDULERS = PluginGroup[TaskScheduler](
    "mlir_sched.schedulers",
    "task scheduler",
    {"gradient": GradientScheduler(), "round-robin": RoundRobinScheduler()},
)


@dataclass(frozen=True)
class SearchMethod:
    """How a run chooses candidates; :meth:`of` makes it.

    Attributes:
        strategy: Makes the strategy of each task.
        cost_model: Makes the cost model that all tasks of a program share.
        scheduler: Chooses the task of each round.
    """

    strategy: StrategyFactory = field(default_factory=EvolutionaryOptions)
    cost_model: CostModelFactory = field(default_factory=XGBoostOptions)
    scheduler: TaskScheduler = field(default_factory=GradientScheduler)

    @staticmethod
    def of(
        strategy: str | StrategyFactory, cost_model: str | CostModelFactory, scheduler: str | TaskScheduler
    ) -> SearchMethod:
        """Return the method with parts that are given by name or as objects.

        Raises:
            UserError: No part has a name, a part cannot be loaded, or a part has no key for stores.
        """
        chosen = (
            _resolved(STRATEGIES, strategy),
            _resolved(COST_MODELS, cost_model),
            _made(_resolved(SCHEDULERS, scheduler)),
        )
        method = SearchMethod(*chosen)
        method.key()
        return method

    def key(self) -> list[str]:
        """Return what tells methods apart: a part of the keys of runs and rounds, which stores hold.

        Raises:
            UserError: A part has no key.
        """
        return [key_of(part) for part in self._parts().values()]

    def shared_model(self) -> SharedCostModel:
        """Return a new cost model for the tasks of one program.

        Raises:
            UserError: The part is no cost model.
        """
        model = self.cost_model()
        if not isinstance(model, CostModel):
            raise UserError(f"the cost model {key_of(self.cost_model)} makes {model!r}, which is no CostModel")
        return SharedCostModel(model)

    def strategy_for(self, space: SearchSpace, model: SharedCostModel, seed: int, number: int) -> SearchStrategy:
        """Return the strategy of a task.

        Args:
            seed: The run's seed, >= 0.
            number: Number of the task among those of the program; each task has random numbers of its own.

        Raises:
            UserError: The part is no search strategy.
        """
        strategy = self.strategy(space, np.random.default_rng([seed, number]), model)
        if not isinstance(strategy, SearchStrategy):
            raise UserError(
                f"the search strategy {key_of(self.strategy)} makes {strategy!r}, which is no SearchStrategy"
            )
        return strategy

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn an exception, where parts of the method are not ours, into a user error that names these parts.

        Raises:
            UserError: A part raised.
        """
        try:
            yield
        except MlirSchedError:
            raise
        except Exception as error:
            foreign = [f"the {what} {key_of(part)}" for what, part in self._parts().items() if not _is_ours(part)]
            if not foreign:
                raise
            file, line = origin_of(error)
            raise UserError(
                f"{' or '.join(foreign)} raised {type(error).__name__}: {error} ({file}:{line}); "
                "what was measured is kept; mend it or leave it out"
            ) from error

    def _parts(self) -> Mapping[str, object]:
        return {
            STRATEGIES.what: self.strategy,
            COST_MODELS.what: self.cost_model,
            SCHEDULERS.what: self.scheduler,
        }


def _resolved(group: PluginGroup[T], part: str | T) -> T:
    return group.named(part) if isinstance(part, str) else part


def _made(scheduler: Any) -> TaskScheduler:
    """Return a task scheduler that is given as an object or as a class."""
    made = scheduler() if isinstance(scheduler, type) else scheduler
    if not isinstance(made, TaskScheduler):
        raise UserError(f"{made!r} is no task scheduler: it has no method next_task")
    return made


def _is_ours(part: object) -> bool:
    module = part.__module__ if isinstance(part, type) else type(part).__module__
    return module.startswith("mlir_sched.")
