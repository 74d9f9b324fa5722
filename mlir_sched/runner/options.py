"""The options of running and timing programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil, inf

from mlir_sched.runner.protocol import LONG_CALL_S
from mlir_sched.targets.clock import CALLS, EVENTS, WALL, Clock
from mlir_sched.targets.target import LOCAL, Driver


@dataclass(frozen=True)
class SampleOptions:
    """The options of one sample: a block of calls that is timed as a whole.

    Attributes:
        least_s: Seconds that a sample takes at least: short programs are called often enough to fill them.
        min_calls, max_calls: Fewest calls per sample, for slow programs, and most calls, for fast ones.
        patience_s: Seconds that ``min_calls`` calls may take; a program slower than that is called less often.
        overhead_s: Rough seconds that a sample takes besides its calls.
        warms_always: Whether a call that warms up comes before every sample; otherwise none comes before a single long
            call.
        pairs_per_baseline: Most pairs that one long sample of the baseline serves.
        calibration_tolerance: Relative excess of the calibration kernel's time that counts as a disturbance.
    """

    least_s: float = 2e-3
    min_calls: int = 1
    max_calls: int = 1_000_000
    patience_s: float = inf
    overhead_s: float = 0.0
    warms_always: bool = False
    pairs_per_baseline: int = 16
    calibration_tolerance: float = 0.08

    def calls(self, call_s: float) -> int:
        """Return how many calls make a sample of a program that takes ``call_s`` seconds per call."""
        fewest = max(1, int(min(self.min_calls, self.patience_s / call_s)))
        return min(max(fewest, ceil(self.least_s / call_s)), self.max_calls)

    def sample_s(self, call_s: float) -> float:
        """Return about how many seconds a sample takes, with the call before it that warms up, if there is one."""
        calls = self.calls(call_s)
        single = calls == 1 and call_s >= LONG_CALL_S
        return (calls + (self.warms_always or not single)) * call_s + self.overhead_s


@dataclass(frozen=True)
class RacingOptions:
    """The options of racing: how many pairs of samples (its own and the baseline's) each candidate gets.

    Attributes:
        budget_s: Seconds of sampling per candidate that may be one of the fastest (``race.Places``).
        min_pairs: Pairs below which no program is ranked, except a clear loser; 6 give 95 % intervals.
        patience_s: Seconds that ``min_pairs`` pairs may take; a candidate slower than that gets fewer pairs.
        min_slow_pairs: Fewest pairs of such a slow candidate.
        precision: Relative width of the ratio's interval at which a candidate needs no more pairs. Source: in simulated
            searches the best of the three fastest is as near to the best as with 0.015, which takes up to half as long
            again; with 0.05 it is further away on a noisy machine.
        fixed: Whether the number of pairs is fixed after a candidate's first pairs, to as many as its budget holds,
            unless the candidate is a clear loser. Otherwise sampling ends once the interval is narrow enough, and such
            an interval may cover less than it says.
        overtime: Multiple of the time of a fixed number of pairs that a candidate may take, where disturbed pairs are
            repeated.
    """

    budget_s: float = 0.15
    min_pairs: int = 6
    patience_s: float = 5.0
    min_slow_pairs: int = 2
    precision: float = 0.03
    fixed: bool = False
    overtime: float = 2.0

    def fewest_pairs(self, pair_s: float) -> int:
        """Return the number of pairs, of ``pair_s`` seconds each, below which a candidate is not ranked."""
        return max(self.min_slow_pairs, min(self.min_pairs, int(self.patience_s / pair_s)))

    def planned_pairs(self, pair_s: float) -> int:
        """Return the number of pairs, of ``pair_s`` seconds each, that a candidate gets if their number is fixed."""
        return max(self.fewest_pairs(pair_s), int(self.budget_s / pair_s))


@dataclass(frozen=True)
class CheckOptions:
    """The options of the numeric checks, besides the checks of the program.

    Attributes:
        data_race_threads: Where programs are timed on one thread, candidates are also checked on this many threads, or
            on all cores if there are fewer, to expose data races; 1 turns these checks off.
        data_race_calls: Calls of this check or, where programs are timed on several threads, further calls; a data race
            shows in only some calls. The checks that tell wrong results from right ones take turns.
        data_race_patience_s: Seconds of these calls after which no further call starts.
        repeated: Whether the first check, and those that tell what it does not, run again after the others, and again
            after timing: a program may keep state between calls.
        hopeless_factor: A candidate that a check shows to be this many times slower than the baseline cannot win: it is
            timed with one pair, and where it competes for places (``race.Places``) it gets no further check, unless the
            pair shows it to be faster. Baselines below 2 ms are too short for this.
    """

    data_race_threads: int = 4
    data_race_calls: int = 4
    data_race_patience_s: float = 5.0
    repeated: bool = True
    hopeless_factor: float = 4.0


PATIENT_CALL_S = 10.0
"""Seconds that one call may take on several threads: the thread that calls has the lowest priority while programs are
timed, and may wait for long on a busy machine."""


FIRST_LOOK_S = 2.0
"""Seconds that the fewest pairs may take at a first look at a program: a variant without scripts, which takes a second
per call, is not told apart from others of such a kind, but from all that are twice as fast."""


@dataclass(frozen=True)
class TimeoutOptions:
    """The options of the time that the runner process may take for an answer.

    Attributes:
        call_s: Seconds that one call may always take; a slow baseline raises the limit.
        factor: Multiple of the baseline's seconds per call that a call of a candidate may take.
        first_call_s: Seconds until the baseline's first call of a task has ended: programs whose calls take minutes are
            tuned, and code that hangs is given up after half an hour.
        baseline_s: Seconds that each further step of preparing a task may take besides its calls: inputs, copies of the
            results and their comparison.
        bookkeeping_s: Seconds for a request that runs no program: a stalled machine (a paused container, swapping) gets
            minutes, as the process is lost otherwise.
    """

    call_s: float = 1.0
    factor: float = 20.0
    first_call_s: float = 1800.0
    baseline_s: float = 120.0
    bookkeeping_s: float = 180.0

    def of_preparing(self, call_s: float) -> float:
        """Return how many seconds preparing may take from the end of one call of the baseline to that of the next."""
        return self.baseline_s + self.factor * call_s

    def of_call(self, baseline_call_s: float) -> float:
        """Return how many seconds one call of a candidate may take."""
        return max(self.call_s, self.factor * baseline_call_s)


@dataclass(frozen=True)
class ClockOptions:
    """What a clock asks of a search, of the last sessions, and of a first look at programs without scripts.

    Attributes:
        samples, racing, checks, timeouts: The options of a search on one thread.
        final_s: Seconds of sampling per program in the last sessions.
        final_pairs: Fewest pairs of a program in the last sessions.
        first_look_s: Most seconds of the fewest pairs of a first look.
    """

    samples: SampleOptions = field(default_factory=SampleOptions)
    racing: RacingOptions = field(default_factory=RacingOptions)
    checks: CheckOptions = field(default_factory=CheckOptions)
    timeouts: TimeoutOptions = field(default_factory=TimeoutOptions)
    final_s: float = 1.0
    final_pairs: int = 20
    first_look_s: float = inf


BY_CLOCK: Mapping[Clock, ClockOptions] = {
    WALL: ClockOptions(first_look_s=FIRST_LOOK_S),
    EVENTS: ClockOptions(
        SampleOptions(least_s=0.06, min_calls=24, max_calls=64, patience_s=1.0, overhead_s=0.3, warms_always=True),
        RacingOptions(budget_s=2.5, min_pairs=3, patience_s=10.0, precision=0.02),
        CheckOptions(hopeless_factor=8.0),
        TimeoutOptions(call_s=30.0),
        final_s=8.0,
        final_pairs=8,
    ),
    CALLS: ClockOptions(SampleOptions(least_s=5e-3), timeouts=TimeoutOptions(call_s=30.0)),
}
"""The options by the clock. On a device shaders have to be compiled. Where its timestamps are the clock, a sample takes
a few processes: a pair takes about a second, and two pairs have to be enough for most candidates."""


@dataclass(frozen=True)
class RunnerOptions:
    """Options of the runner; the defaults are those of :data:`LOCAL`, see :meth:`for_device` for others.

    Attributes:
        driver: What runs programs, and the clock that times them.
        threads: Cores a program runs on: 1 is IREE's local-sync on one pinned core, more is local-task with one
            pinned worker per core. Devices choose for themselves.
        seed: Seed of the random order of candidates, and of the two samples of a pair.
        samples, racing, checks, timeouts: The options of each of these.
    """

    driver: Driver = LOCAL
    threads: int = 1
    seed: int = 0
    samples: SampleOptions = field(default_factory=SampleOptions)
    racing: RacingOptions = field(default_factory=RacingOptions)
    checks: CheckOptions = field(default_factory=CheckOptions)
    timeouts: TimeoutOptions = field(default_factory=TimeoutOptions)

    @classmethod
    def for_device(cls, driver: Driver, *, threads: int = 1, seed: int = 0) -> RunnerOptions:
        """Return the options for tuning on a driver: those of its clock."""
        asked = BY_CLOCK[driver.clock]
        timeouts = asked.timeouts
        if threads > 1:
            timeouts = replace(timeouts, call_s=max(timeouts.call_s, PATIENT_CALL_S))
        return cls(driver, threads, seed, asked.samples, asked.racing, asked.checks, timeouts)

    @classmethod
    def final(cls, driver: Driver, *, threads: int = 1, seed: int = 0) -> RunnerOptions:
        """Return the options for measuring a few programs well on a driver: for final decisions and reported numbers.

        Their intervals cover 95 %: the number of pairs does not depend on the ratios and is at least 6, and every pair
        has a baseline sample of its own.
        """
        options, asked = cls.for_device(driver, threads=threads, seed=seed), BY_CLOCK[driver.clock]
        racing = replace(
            options.racing,
            budget_s=asked.final_s,
            min_pairs=asked.final_pairs,
            patience_s=6.0,
            min_slow_pairs=6,
            fixed=True,
        )
        checks = replace(options.checks, data_race_patience_s=30.0)
        return replace(options, samples=replace(options.samples, pairs_per_baseline=1), racing=racing, checks=checks)

    @property
    def clock(self) -> Clock:
        """The clock that times programs."""
        return self.driver.clock

    @property
    def first_look(self) -> RunnerOptions:
        """These options for a first look at programs without scripts, which are measured again before they are emitted.

        No check is repeated, and there is no look for data races: the compiler made the programs without any script.
        Slow programs get few pairs, on the CPU sooner than on devices, whose samples have processes of their own.
        """
        patience_s = min(self.racing.patience_s, BY_CLOCK[self.clock].first_look_s)
        racing = replace(self.racing, min_slow_pairs=1, patience_s=patience_s)
        checks = replace(self.checks, data_race_calls=0, repeated=False)
        return replace(self, racing=racing, checks=checks)

    @property
    def baseline_only(self) -> RunnerOptions:
        """These options for timing a baseline without any candidate: in a search, a slow baseline gets few pairs.

        Candidates are timed in turns with it again; until then its time only says which task matters.
        """
        return (
            self if self.racing.fixed else replace(self, racing=replace(self.racing, patience_s=self.racing.budget_s))
        )

    def capped(self, seconds: float) -> RunnerOptions:
        """Return these options with at most so many seconds of sampling per program, but for the fewest pairs."""
        if seconds == inf:
            return self
        budget_s, patience_s = min(self.racing.budget_s, seconds), min(self.racing.patience_s, seconds)
        return replace(self, racing=replace(self.racing, budget_s=budget_s, patience_s=patience_s, overtime=1.0))

    def lasting(self, seconds: float) -> RunnerOptions:
        """Return these options with so many seconds of sampling per program, but for the fewest pairs."""
        capped = self.capped(seconds)
        return self if seconds == inf else replace(capped, racing=replace(capped.racing, budget_s=seconds))

    @property
    def chain_length(self) -> int:
        """Dispatches of the chain with which short dispatches are timed (``compiler/chain.py``); 0 for none."""
        return self.clock.chain_length(self.threads)
