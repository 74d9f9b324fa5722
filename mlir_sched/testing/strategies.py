"""The tests that every search strategy must pass; subclass them for a strategy of your own (pytest collects the class).

::

    class TestMySearch(StrategyTests):
        def make(self, space, seed):
            return MySearch(space, np.random.default_rng(seed))
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from mlir_sched.errors import IllegalTraceError
from mlir_sched.search.strategy import Observation, SearchSpace, SearchStrategy
from mlir_sched.search.synthetic_space import SyntheticMatmulSpace
from mlir_sched.trace import Trace

SEEDS = range(5)
SPACE = SyntheticMatmulSpace(64, 48, 32)


def run_search(strategy: SearchStrategy, space: SyntheticMatmulSpace, rounds: int) -> list[Observation]:
    """Run a search for some rounds of 16 candidates and return its observations, in order."""
    observed: list[Observation] = []
    for _ in range(rounds):
        results = [Observation(trace, space.seconds(trace)) for trace in strategy.suggest(16)]
        strategy.observe(results)
        observed += results
    return observed


class StrategyTests(ABC):
    """The contract of ``SearchStrategy`` as tests."""

    @abstractmethod
    def make(self, space: SearchSpace, seed: int) -> SearchStrategy:
        """Return a new strategy."""

    def test_suggestions_are_distinct_and_legal(self) -> None:
        """No trace is suggested twice, and a suggested trace needs no repair."""
        for seed in SEEDS:
            traces = [o.trace for o in run_search(self.make(SPACE, seed), SPACE, 4)]
            assert traces
            assert len({trace.key for trace in traces}) == len(traces)
            assert all(SPACE.repaired(trace) == trace for trace in traces)

    def test_no_more_than_asked_for(self) -> None:
        """``suggest`` returns at most ``count`` traces, and none for 0."""
        for seed in SEEDS:
            strategy = self.make(SPACE, seed)
            for count in (0, 1, 3, 16):
                assert len(strategy.suggest(count)) <= count

    def test_a_negative_count_is_refused(self) -> None:
        """A negative count raises ``ValueError``."""
        with suppress(ValueError):
            self.make(SPACE, 0).suggest(-1)
            raise AssertionError("a negative count was accepted")

    def test_the_same_seed_and_measurements_give_the_same_suggestions(self) -> None:
        """Two runs agree, also when the results of a round arrive in another order."""
        for seed in SEEDS:
            first, second = self.make(SPACE, seed), self.make(SPACE, seed)
            for _ in range(3):
                traces = first.suggest(16)
                assert second.suggest(16) == traces
                results = [Observation(trace, SPACE.seconds(trace)) for trace in traces]
                first.observe(results)
                second.observe(results[::-1])

    def test_what_was_observed_or_excluded_before_is_never_suggested(self) -> None:
        """A resumed run does not measure a candidate again."""
        for seed in SEEDS:
            likely = [o.trace for o in run_search(self.make(SPACE, seed), SPACE, 2)]
            strategy = self.make(SPACE, seed)
            strategy.observe([Observation(trace, SPACE.seconds(trace)) for trace in likely[::2]])
            strategy.exclude(likely[1::2])
            suggested = {o.trace.key for o in run_search(strategy, SPACE, 2)}
            assert not suggested & {trace.key for trace in likely}

    def test_what_is_released_may_be_suggested_again(self) -> None:
        """A suggestion that was not tried is not lost, and one that was observed never comes back."""
        strategy = self.make(TinySpace(), 0)
        traces = strategy.suggest(TinySpace.size)
        strategy.observe([Observation(trace, 1.0) for trace in traces[:1]])
        strategy.release(traces)
        again = {trace.key for found in self._rounds(strategy) for trace in found}
        assert again == {trace.key for trace in traces[1:]}

    def test_a_search_where_all_fail_goes_on(self) -> None:
        """After rounds of failures alone there are further suggestions, and none of the failed ones again."""
        for seed in SEEDS:
            strategy, failed = self.make(SPACE, seed), set[str]()
            for _ in range(4):
                traces = strategy.suggest(16)
                assert traces
                assert not failed & {trace.key for trace in traces}
                strategy.observe([Observation(trace, None) for trace in traces])
                failed |= {trace.key for trace in traces}

    def test_an_exhausted_space_gives_fewer_and_then_none(self) -> None:
        """The search ends by itself, with every trace found."""
        strategy = self.make(TinySpace(), 0)
        found = [trace for traces in self._rounds(strategy) for trace in traces]
        assert len({trace.key for trace in found}) == len(found)
        assert self.finds_all_of(len(found))
        assert strategy.suggest(5) == []

    def test_a_space_without_any_legal_trace_gives_none(self) -> None:
        """The search for a legal trace is bounded."""
        assert self.make(HopelessSpace(), 0).suggest(16) == []

    def finds_all_of(self, found: int) -> bool:
        """Say whether the number of traces found in :class:`TinySpace` is right; override for a partial search."""
        return found == TinySpace.size

    def _rounds(self, strategy: SearchStrategy) -> Iterator[list[Trace]]:
        while traces := strategy.suggest(5):
            strategy.observe([Observation(trace, 1.0 + index) for index, trace in enumerate(traces)])
            yield traces


class TinySpace(SyntheticMatmulSpace):
    """A tiny space: only the sketch without register tiles, of a 2 x 4 x 2 matrix multiplication."""

    size = 2 * 3 * 2 * 4

    def __init__(self) -> None:
        super().__init__(2, 4, 2)

    @property
    def sketches(self) -> tuple[str, ...]:
        """The one sketch."""
        return ("rows",)


class HopelessSpace(SyntheticMatmulSpace):
    """A space in which every draw is illegal."""

    def sample(self, rng: np.random.Generator, sketch: str | None = None) -> Trace:
        """Raise."""
        raise IllegalTraceError(f"no draw of sketch {sketch} from {rng} is legal")

    def repaired(self, trace: Trace) -> Trace:
        """Raise."""
        raise IllegalTraceError(f"{trace.values} is not legal")
