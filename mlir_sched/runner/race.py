"""Races candidates: takes paired samples in rounds, which candidates leave once it is known what they decide."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mlir_sched.errors import Failure
from mlir_sched.outcome import Timing
from mlir_sched.runner.options import RunnerOptions
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import Pair, RequestFailed, SamplePairs
from mlir_sched.runner.statistics import (
    FEWEST_VALUES,
    Interval,
    is_decided,
    likely_spread,
    median_interval,
    ratio_interval,
)

FIRST_PAIRS = 2
"""Pairs of the first rounds: enough to see a loser where other pairs have shown how far two are off."""

KNOWN_SPREADS = 100
"""Last spreads of two pairs that are kept per baseline; a machine's noise changes."""

ROUNDS = 4
"""Further rounds that a candidate's budget is divided into."""


@dataclass(frozen=True)
class Places:
    """What the programs of a race compete for.

    Attributes:
        count: How many of the fastest programs are of use, >= 1.
        held: Ratios that other programs are known to reach: the lower ends of their intervals.
        whole: Whether all programs get all checks before they are timed, also those that win no place.
    """

    count: int = 1
    held: tuple[float, ...] = ()
    whole: bool = False


@dataclass
class Contender:
    """A candidate during timing; it collects pairs until its ratio is known, it has lost or its budget is spent.

    Attributes:
        call_s: Rough seconds per call; 0 until it was warmed up.
        once: Whether it gets one pair only.
        proven: Whether it has passed all of its checks.
        confirmed: Whether it was confirmed after its last pair.
        pair_s: Seconds that one of its first pairs took, with the wait for a quiet moment; 0 until then.
        planned: Number of pairs that it gets if this number is fixed (``RacingOptions.fixed``); 0 until then.
        least: What its ratio is at least, by all that the race shows; 0 until its end.
    """

    handle: int
    program: Program
    call_s: float = 0.0
    pairs: list[Pair] = field(default_factory=list)
    spent_s: float = 0.0
    failure: Failure | None = None
    once: bool = False
    proven: bool = True
    confirmed: bool = False
    pair_s: float = 0.0
    planned: int = 0
    least: float = 0.0

    @property
    def quiet(self) -> int:
        """Number of undisturbed pairs."""
        return sum(pair.quiet for pair in self.pairs)

    @property
    def spread(self) -> float | None:
        """How far apart the ratios of its first two quiet pairs are, as a factor >= 1.

        None without two that have samples of the baseline of their own. Only what gets further pairs has later ones:
        these would show how far two are off for fast programs alone.
        """
        ratios = _by_sample([pair for pair in self.pairs if pair.quiet][:2])
        return max(ratios) / min(ratios) if len(ratios) == 2 else None

    def ratio(self) -> Interval:
        """Return the speed relative to the baseline, above 1 is faster; from quiet pairs if at least two are."""
        kept = kept_pairs(self.pairs, FIRST_PAIRS)
        return ratio_interval([p.baseline_s for p in kept], [p.own_s for p in kept])

    def timing(self) -> Timing:
        """Return the summary of its pairs; the interval of the ratio counts samples of the baseline, not pairs."""
        kept = kept_pairs(self.pairs, FEWEST_VALUES)
        own = median_interval([pair.own_s for pair in kept])
        return _timing(own, median_interval(independent_ratios(kept)), len(self.pairs) - self.quiet)


class Race:
    """Times contenders against the baseline.

    A contender takes part as long as it may be one of the fastest programs that there are places for. To lose, its
    interval has to lie below what that takes: from six samples of the baseline on that of their order statistics,
    before that the farthest that two pairs may be off (``statistics.likely_spread``), as the first two of every program
    beside this baseline show. The first two are taken in two rounds, and so as far apart in time as others are. A
    contender that is not proven when it would take part further is proven then, the fastest first, and all are
    confirmed once they have their pairs. Where one of them fails, those that lost to it take part again: in the end no
    place is held by what was not proven and confirmed.

    Where the number of pairs is fixed, a contender loses only by an interval that does not overlap that of the best.

    Args:
        ask_pairs: Function that has the runner process take the pairs of one request.
        warm: Function that warms a program up in the runner process and returns its rough seconds per call.
        baseline_call_s: Rough seconds per call of the baseline.
        seed: Distinguishes this call from others of the same run.
        places: What the contenders compete for; by default to be the fastest of them.
        prove: Function that makes the checks that a contender lacks: it is proven then, or has a failure.
        confirm: Function that sees whether a contender still is what it was after its pairs, or has a failure.
        spreads: Spreads of two pairs in earlier races beside the baseline, to which those of this race are added.
    """

    def __init__(
        self,
        ask_pairs: Callable[[Contender, SamplePairs], tuple[Pair, ...]],
        warm: Callable[[Contender], float],
        options: RunnerOptions,
        baseline_call_s: float,
        *,
        seed: int,
        places: Places | None = None,
        prove: Callable[[Contender], None] = lambda _: None,
        confirm: Callable[[Contender], None] = lambda _: None,
        spreads: deque[float] | None = None,
    ) -> None:
        self._ask_pairs = ask_pairs
        self._warm = warm
        self._samples, self._racing = options.samples, options.racing
        self._baseline_calls = self._samples.calls(baseline_call_s)
        self._baseline_call_s = baseline_call_s
        self._rng = np.random.default_rng([options.seed, seed])
        self._places, self._prove, self._confirm = places or Places(), prove, confirm
        self._spreads = deque[float]() if spreads is None else spreads

    def run(self, contenders: Sequence[Contender]) -> None:
        """Give each contender its pairs, or a failure if it hangs or crashes."""
        self._round(contenders, self._first_pairs)
        self._round([c for c in _alive(contenders) if len(c.pairs) < self._fewest_pairs(c)], self._first_pairs)
        while active := self._active(contenders):
            self._round(active, self._pairs_of_round)
        spread = self._spread(contenders)
        for contender in contenders:
            contender.least = _bounds(contender, spread)[0]
        self._spreads.extend(contender.spread for contender in contenders if contender.spread is not None)

    def _active(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return the contenders that need further pairs; where none does, all are confirmed."""
        while True:
            active = [c for c in self._promising(contenders) if not self._is_known(c)]
            unconfirmed = [c for c in _alive(contenders) if not c.confirmed]
            if active or not unconfirmed:
                return active
            for contender in unconfirmed:
                self._confirm(contender)
                contender.confirmed = True

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
        contender.confirmed = False
        contender.call_s = min(contender.call_s, *(pair.own_s for pair in pairs))

    def _first_pairs(self, contender: Contender) -> int:
        """Return the pairs of a first round: all at once where their number is fixed by what they take."""
        return self._fewest_pairs(contender) if self._racing.fixed else 1

    def _fewest_pairs(self, contender: Contender) -> int:
        """Return the pairs that a contender gets in any case."""
        return 1 if contender.once else min(FIRST_PAIRS, self._enough(contender))

    def _pairs_of_round(self, contender: Contender) -> int:
        """Return how many pairs fit a round's share of the budget, >= 1; if their number is fixed, a share of it.

        A contender that is not ranked yet gets no more than it lacks.
        """
        if self._racing.fixed:
            return min(max(1, contender.planned // ROUNDS), contender.planned - contender.quiet)
        share = max(1, int(self._racing.budget_s / ROUNDS / self._pair_s(contender)))
        missing = self._enough(contender) - contender.quiet
        return min(share, missing) if missing > 0 else share

    def _pair_s(self, contender: Contender) -> float:
        """Return about how long one pair takes, in seconds."""
        return self._samples.sample_s(contender.call_s) + self._samples.sample_s(self._baseline_call_s)

    def _enough(self, contender: Contender) -> int:
        """Return the number of pairs below which a contender is not ranked."""
        return self._racing.fewest_pairs(self._pair_s(contender))

    def _promising(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return the contenders that have not lost; those that have the pairs to be judged are proven by now."""
        spread = self._spread(contenders)
        while True:
            alive = _alive(contenders)
            bounds = {c.handle: _bounds(c, spread) for c in alive}
            left = self._not_lost(alive, bounds)
            judged = [c for c in left if bounds[c.handle][1] < math.inf or self._is_known(c)]
            unproven = [c for c in judged if not c.proven]
            if not unproven:
                return left
            self._prove(max(unproven, key=lambda c: c.ratio().median))

    def _spread(self, contenders: Sequence[Contender]) -> float:
        """Return the farthest that two pairs may be off, as a factor; infinity where that is not known."""
        return likely_spread([*self._spreads, *(c.spread for c in contenders if c.spread is not None)])

    def _not_lost(self, alive: Sequence[Contender], bounds: Mapping[int, tuple[float, float]]) -> list[Contender]:
        """Return the contenders that may be one of the fastest, by what their pairs show.

        Args:
            bounds: What the ratio of each is at least and at most, by handle.
        """
        left = [c for c in alive if not c.once]
        if self._racing.fixed:
            ratios = {c.handle: c.ratio() for c in alive}
            top = max(ratios.values(), key=lambda ratio: ratio.median, default=None)
            return [c for c in left if top is None or not _is_below(ratios[c.handle], top)]
        fastest = sorted((*self._places.held, *(low for low, _ in bounds.values())), reverse=True)
        least = fastest[self._places.count - 1] if len(fastest) >= self._places.count else 0.0
        return [c for c in left if bounds[c.handle][1] >= least]

    def _is_known(self, contender: Contender) -> bool:
        """Say whether a contender needs no more pairs: all planned taken, its ratio precise, or its budget spent."""
        budget_s = self._racing.budget_s
        if self._racing.fixed:
            planned_s = max(budget_s, contender.planned * contender.pair_s)
            spent = contender.spent_s >= self._racing.overtime * planned_s
            return contender.quiet >= contender.planned or (spent and len(contender.pairs) >= contender.planned)
        enough = contender.quiet >= self._enough(contender)
        precise = enough and contender.ratio().relative_width() <= self._racing.precision
        spent = contender.spent_s >= (budget_s if enough else 2 * budget_s)
        return precise or (spent and len(contender.pairs) >= self._enough(contender))


def _bounds(contender: Contender, spread: float) -> tuple[float, float]:
    """Return what the ratio of a contender is at least and at most; nothing is known of it before its pairs say so.

    Args:
        spread: How far two quiet pairs may be off; infinity where that is not known.
    """
    ratios = _by_sample([pair for pair in contender.pairs if pair.quiet])
    if FIRST_PAIRS <= len(ratios) < FEWEST_VALUES and spread < math.inf:
        return min(ratios) / spread, max(ratios) * spread
    if len(ratios) < FEWEST_VALUES:
        ratios = _by_sample(contender.pairs)
    if len(ratios) < FEWEST_VALUES:
        return 0.0, math.inf
    found = median_interval(ratios)
    return found.low, found.high


def _is_below(own: Interval, top: Interval) -> bool:
    """Say whether a ratio is ranked below the best one."""
    return own.median < top.median and is_decided(own, top)


def kept_pairs(pairs: Sequence[Pair], fewest: int) -> list[Pair]:
    """Return the undisturbed pairs, or all pairs if fewer than ``fewest`` are: a busy machine gives an answer too."""
    quiet = [pair for pair in pairs if pair.quiet]
    return quiet if len(quiet) >= fewest else list(pairs)


def independent_ratios(pairs: Sequence[Pair]) -> list[float]:
    """Return one ratio per sample of the baseline: its time over the median of the samples that it was paired with.

    With fewer than two samples of the baseline, return one ratio per pair: their range says nothing of the baseline's
    own noise, but it is not empty.
    """
    ratios = _by_sample(pairs)
    return ratios if len(ratios) >= 2 else [pair.baseline_s / pair.own_s for pair in pairs]


def _by_sample(pairs: Sequence[Pair]) -> list[float]:
    """Return one ratio per sample of the baseline, however few there are."""
    groups: list[tuple[float, list[float]]] = []
    for pair in pairs:
        if groups and pair.shared and groups[-1][0] == pair.baseline_s:
            groups[-1][1].append(pair.own_s)
        else:
            groups.append((pair.baseline_s, [pair.own_s]))
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
