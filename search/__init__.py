"""Search strategies and task schedulers: plain Python over traces and features, without MLIR or IREE."""

from mlir_sched.search.evolutionary import EvolutionaryOptions, EvolutionarySearch
from mlir_sched.search.random_search import RandomSearch
from mlir_sched.search.similar_tasks import Demand
from mlir_sched.search.strategy import Observation, SearchSpace, SearchStrategy, StrategyFactory
from mlir_sched.search.task_scheduler import (
    GradientOptions,
    GradientScheduler,
    TaskProgress,
    TaskScheduler,
)

__all__ = [
    "Demand",
    "EvolutionaryOptions",
    "EvolutionarySearch",
    "GradientOptions",
    "GradientScheduler",
    "Observation",
    "RandomSearch",
    "SearchSpace",
    "SearchStrategy",
    "StrategyFactory",
    "TaskProgress",
    "TaskScheduler",
]
