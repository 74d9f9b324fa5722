import numpy as np

from mlir_sched.models import CostModel, RandomModel, SharedCostModel, XGBoostModel
from mlir_sched.search import EvolutionaryOptions, EvolutionarySearch, RandomSearch, SearchStrategy
from mlir_sched.search.strategy import SearchSpace
from mlir_sched.testing.strategies import StrategyTests

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
