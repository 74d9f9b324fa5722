"""Search strategies and task schedulers: plain Python over traces and features, without MLIR or IREE."""

from mlir_sched.search.evolutionary import EvolutionaryOptions, EvolutionarySearch
from mlir_sched.search.random_search import RandomSearch
from mlir_sched.search.replay import ReplaySearch
from mlir_sched.search.strategy import Observation, SearchSpace, SearchStrategy
from mlir_sched.search.task_scheduler import (
    GradientOptions,
    GradientScheduler,
    TaskProgress,
)

__all__ = [
    "EvolutionaryOptions",
    "EvolutionarySearch",
    "GradientOptions",
    "GradientScheduler",
    "Observation",
    "RandomSearch",
    "ReplaySearch",
    "SearchSpace",
    "SearchStrategy",
    "TaskProgress",
]
