import numpy as np
import pytest

from mlir_sched.sampling import DISTRIBUTIONS, IntRange, PerfectTile, Permutation
from mlir_sched.search.mutators import MUTATION_WEIGHTS, mutate_trace
from mlir_sched.testing.strategies import SPACE
from mlir_sched.trace import Decision, Trace


def samples(count: int = 200) -> list[Trace]:
    rng = np.random.default_rng(0)
    return [SPACE.sample(rng, "rows") for _ in range(count)]


def test_every_primitive_has_a_weight() -> None:
    assert set(DISTRIBUTIONS) <= set(MUTATION_WEIGHTS)


def test_a_mutation_changes_one_decision_of_a_copy() -> None:
    rng = np.random.default_rng(1)
    for trace in samples():
        before = trace.to_json()
        mutated = mutate_trace(trace, rng, MUTATION_WEIGHTS)
        assert mutated is not None
        assert sum(mutated.values[name] != value for name, value in trace.values.items()) == 1
        assert list(mutated.values) == list(trace.values)
        assert trace.to_json() == before


def test_decisions_mutate_in_proportion_to_their_weights() -> None:
    trace = Trace(
        "a", (Decision("tile", PerfectTile(64, 1), (8,)), Decision("order", Permutation(("m", "n")), ("m", "n")))
    )
    rng = np.random.default_rng(2)
    changed = 0
    for _ in range(2000):
        mutated = mutate_trace(trace, rng, {"perfect_tile": 3.0, "permutation": 1.0})
        assert mutated is not None
        changed += mutated.values["tile"] != (8,)
    assert changed / 2000 == pytest.approx(0.75, abs=0.04)


def test_nothing_to_mutate_gives_none() -> None:
    fixed = Trace("a", (Decision("x", IntRange(3, 3), 3), Decision("tile", PerfectTile(8, 1), (8,))))
    assert mutate_trace(fixed, np.random.default_rng(0), {"int_range": 1.0}) is None
    assert mutate_trace(fixed, np.random.default_rng(0), {"perfect_tile": 0.0}) is None
