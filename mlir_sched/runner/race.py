"""Races candidates: takes paired samples in rounds, from which candidates drop out once their rank is decided."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from mlir_sched.errors import Failure
from mlir_sched.outcome import Timing
from mlir_sched.runner.options import RunnerOptions
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import Pair, RequestFailed, SamplePairs
from mlir_sched.runner.statistics import FEWEST_VALUES, Interval, is_decided, median_interval, ratio_interval

FIRST_PAIRS = 2
"""Pairs of the first round: enough to see a clear loser."""

ROUNDS = 4
"""Further rounds that a candidate's own budget is divided into."""

MAX_BUDGETS = 6.0
"""Most budgets that one candidate gets, even if its rank is still undecided."""


@dataclass
class Contender:
    """A candidate during timing; it collects pairs until its ratio is known, it has lost or its budget is spent.

    Attributes:
        call_s: Rough seconds per call; 0 until it was warmed up.
        once: Whether it gets one pair only.
        pair_s: Seconds that one of its first pairs took, with the wait for a quiet moment; 0 until then.
        planned: Number of pairs that it gets if this number is fixed (``RacingOptions.fixed``); 0 until then.
    """

    handle: int
    program: Program
    call_s: float = 0.0
    pairs: list[Pair] = field(default_factory=list)
    spent_s: float = 0.0
    failure: Failure | None = None
    once: bool = False
    pair_s: float = 0.0
    planned: int = 0

    @property
    def quiet(self) -> int:
        """Number of undisturbed pairs."""
        return sum(pair.quiet for pair in self.pairs)

    def ratio(self, fewest: int = FIRST_PAIRS) -> Interval:
        """Return the speed relative to the baseline, above 1 is faster; from quiet pairs if at least ``fewest`` are."""
        kept = kept_pairs(self.pairs, fewest)
        return ratio_interval([p.baseline_s for p in kept], [p.own_s for p in kept])

    def timing(self) -> Timing:
        """Return the summary of its pairs; the interval of the ratio counts samples of the baseline, not pairs."""
        kept = kept_pairs(self.pairs, FEWEST_VALUES)
        own = median_interval([pair.own_s for pair in kept])
        return _timing(own, median_interval(independent_ratios(kept)), len(self.pairs) - self.quiet)


class Race:
    """Times contenders against the baseline.

    Args:
        ask_pairs: Function that has the runner process take the pairs of one request.
        warm: Function that warms a program up in the runner process and returns its rough seconds per call.
        baseline_call_s: Rough seconds per call of the baseline.
        seed: Distinguishes this call from others of the same run.
    """

    def __init__(
        self,
        ask_pairs: Callable[[Contender, SamplePairs], tuple[Pair, ...]],
        warm: Callable[[Contender], float],
        options: RunnerOptions,
        baseline_call_s: float,
        *,
        seed: int,
    ) -> None:
        self._ask_pairs = ask_pairs
        self._warm = warm
        self._samples, self._racing = options.samples, options.racing
        self._baseline_calls = self._samples.calls(baseline_call_s)
        self._baseline_call_s = baseline_call_s
        self._rng = np.random.default_rng([options.seed, seed])

    def run(self, contenders: Sequence[Contender]) -> None:
        """Give each contender its pairs, or a failure if it hangs or crashes.

        The time budget that clear losers left is spent on ranking the near-ties for the best.
        """
        self._round(contenders, self._first_pairs)
        pool_s = self._racing.budget_s * len(contenders)
        limit_s = self._racing.budget_s
        while active := self._active(contenders, limit_s):
            self._round(active, self._pairs_of_round)
        while not self._racing.fixed and sum(c.spent_s for c in contenders) < pool_s:
            ties = self._near_ties(contenders)
            if len(ties) < 2:
                return
            self._round(ties, self._pairs_of_round)

    def _round(self, contenders: Sequence[Contender], pairs_of: Callable[[Contender], int]) -> None:
        for position in self._rng.permutation(len(contenders)):
            contender = contenders[position]
            start = time.perf_counter()
            try:
                self._sample(contender, pairs_of)
            except RequestFailed as failed:
                contender.failure = failed.failure
            contender.spent_s += time.perf_counter() - start

    def _sample(self, contender: Contender, pairs_of: Callable[[Contender], int]) -> None:
        if not contender.call_s:
            contender.call_s = self._warm(contender)
        request = SamplePairs(
            handle=contender.handle,
            pairs=pairs_of(contender),
            baseline_calls=self._baseline_calls,
            calls=self._samples.calls(contender.call_s),
            seed=int(self._rng.integers(2**32)),
            pairs_per_baseline=self._samples.pairs_per_baseline,
        )
        start = time.perf_counter()
        pairs = self._ask_pairs(contender, request)
        if not contender.planned:
            contender.pair_s = max((time.perf_counter() - start) / len(pairs), self._pair_s(contender))
            contender.planned = self._racing.planned_pairs(contender.pair_s)
        contender.pairs += pairs
        contender.call_s = min(contender.call_s, *(pair.own_s for pair in pairs))

    def _first_pairs(self, contender: Contender) -> int:
        return 1 if contender.once else min(FIRST_PAIRS, self._enough(contender))

    def _pairs_of_round(self, contender: Contender) -> int:
        """Return how many pairs fit a round's share of the budget, >= 1; if their number is fixed, a share of it."""
        if self._racing.fixed:
            return min(max(1, contender.planned // ROUNDS), contender.planned - contender.quiet)
        return max(1, int(self._racing.budget_s / ROUNDS / self._pair_s(contender)))

    def _pair_s(self, contender: Contender) -> float:
        """Return about how long one pair takes, in seconds."""
        return self._samples.sample_s(contender.call_s) + self._samples.sample_s(self._baseline_call_s)

    def _enough(self, contender: Contender) -> int:
        """Return the number of pairs below which a contender is not ranked."""
        return self._racing.fewest_pairs(self._pair_s(contender))

    def _active(self, contenders: Sequence[Contender], limit_s: float) -> list[Contender]:
        """Return the contenders that need more pairs and have budget left for them."""
        alive = _alive(contenders)
        if not alive:
            return []
        best = self._best(alive)
        return [c for c in alive if not self._is_lost(c, best) and not self._is_known(c, limit_s)]

    def _is_known(self, contender: Contender, limit_s: float) -> bool:
        """Say whether a contender needs no more pairs: all planned taken, its ratio precise, or its budget spent."""
        if self._racing.fixed:
            planned_s = max(limit_s, contender.planned * contender.pair_s)
            spent = contender.spent_s >= self._racing.overtime * planned_s
            return contender.quiet >= contender.planned or (spent and len(contender.pairs) >= contender.planned)
        enough = contender.quiet >= self._enough(contender)
        precise = enough and contender.ratio().relative_width() <= self._racing.precision
        spent = contender.spent_s >= (limit_s if enough else 2 * limit_s)
        return precise or (spent and len(contender.pairs) >= self._enough(contender))

    def _is_lost(self, contender: Contender, best: Contender) -> bool:
        """Say whether a contender is a clear loser: ranked below the best, or far slower in its first quiet pairs."""
        if contender.once:
            return True
        if contender.quiet < FIRST_PAIRS and len(contender.pairs) < self._enough(contender):
            return False
        own, top = contender.ratio(), best.ratio()
        if max(top.median, 1.0) > self._racing.slow_factor * own.high:
            return True
        return own.median < top.median and is_decided(own, top)

    def _near_ties(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return the best contender and those not ranked below it, as long as more pairs may rank them.

        The list is empty if the intervals of all of them are narrow enough, or one has spent :data:`MAX_BUDGETS`.
        """
        alive = _alive(contenders)
        if not alive:
            return []
        best = self._best(alive)
        ties = [c for c in alive if c is best or not self._is_lost(c, best)]
        limit_s = MAX_BUDGETS * self._racing.budget_s
        known = all(c.ratio().relative_width() <= self._racing.precision for c in ties)
        return ties if not known and all(c.spent_s < limit_s for c in ties) else []

    def _best(self, alive: Sequence[Contender]) -> Contender:
        return max(alive, key=lambda c: c.ratio().median)


def kept_pairs(pairs: Sequence[Pair], fewest: int) -> list[Pair]:
    """Return the undisturbed pairs, or all pairs if fewer than ``fewest`` are: a busy machine gives an answer too."""
    quiet = [pair for pair in pairs if pair.quiet]
    return quiet if len(quiet) >= fewest else list(pairs)


def independent_ratios(pairs: Sequence[Pair]) -> list[float]:
    """Return one ratio per sample of the baseline: its time over the median of the samples that it was paired with.

    With fewer than two samples of the baseline, return one ratio per pair: their range says nothing of the baseline's
    own noise, but it is not empty.
    """
    groups: list[tuple[float, list[float]]] = []
    for pair in pairs:
        if groups and pair.shared and groups[-1][0] == pair.baseline_s:
            groups[-1][1].append(pair.own_s)
        else:
            groups.append((pair.baseline_s, [pair.own_s]))
    if len(groups) < 2:
        return [pair.baseline_s / pair.own_s for pair in pairs]
    return [baseline_s / float(np.median(own_s)) for baseline_s, own_s in groups]


def baseline_timing(pairs: Sequence[Pair]) -> Timing:
    """Return the summary of the baseline's side of all pairs; its ratio to itself is 1."""
    sampled = [pair for pair in pairs if not pair.shared] or pairs
    own = median_interval([pair.baseline_s for pair in kept_pairs(sampled, FEWEST_VALUES)])
    return _timing(own, Interval(1.0, 1.0, 1.0, 1.0, own.count), sum(not p.quiet for p in pairs))


def _alive(contenders: Sequence[Contender]) -> list[Contender]:
    return [c for c in contenders if c.failure is None]


def _timing(own: Interval, ratio: Interval, disturbed: int) -> Timing:
    return Timing(
        median_s=own.median,
        low_s=own.low,
        high_s=own.high,
        samples=own.count,
        ratio=ratio.median,
        ratio_low=ratio.low,
        ratio_high=ratio.high,
        disturbed=disturbed,
    )
