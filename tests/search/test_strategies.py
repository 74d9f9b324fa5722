import numpy as np

from benchmarks.search.record_space import GivenTraces
from mlir_sched.models import CostModel, RandomModel, SharedCostModel, XGBoostModel
from mlir_sched.search import EvolutionaryOptions, EvolutionarySearch, RandomSearch, SearchStrategy
from mlir_sched.search.strategy import SearchSpace
from mlir_sched.testing.strategies import StrategyTests, TinySpace
from mlir_sched.trace import Trace

SMALL = EvolutionaryOptions(population=32, generations=2, max_repairs=200)


def evolution(space: SearchSpace, seed: int, model: CostModel) -> EvolutionarySearch:
    return EvolutionarySearch(space, np.random.default_rng(seed), SharedCostModel(model), SMALL)


class TestRandomSearch(StrategyTests):
    def make(self, space: SearchSpace, seed: int) -> SearchStrategy:
        return RandomSearch(space, np.random.default_rng(seed))


class TestEvolutionarySearch(StrategyTests):
    def make(self, space: SearchSpace, seed: int) -> SearchStrategy:
        return evolution(space, seed, XGBoostModel())


class TestEvolutionWithoutModel(StrategyTests):
    def make(self, space: SearchSpace, seed: int) -> SearchStrategy:
        return evolution(space, seed, RandomModel(seed))


class TestGivenTraces(StrategyTests):
    def make(self, space: SearchSpace, seed: int) -> SearchStrategy:
        given: list[Trace] = []
        if not isinstance(space, TinySpace):
            given = RandomSearch(space, np.random.default_rng(seed)).suggest(100)
        return GivenTraces(space, np.random.default_rng(seed), given)

    def finds_all_of(self, found: int) -> bool:
        return found == 0
