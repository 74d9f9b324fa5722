"""The options of running and timing programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from mlir_sched.targets.target import LOCAL


@dataclass(frozen=True)
class RunnerOptions:
    """Options of the runner; the defaults are those for ``local``, see :meth:`for_device` for others.

    Attributes:
        driver: ``local`` for the CPU, else the URI of an IREE HAL device: ``vulkan`` or ``vulkan://GPU-<uuid>``.
        threads: Cores a program runs on: 1 is IREE's local-sync on one pinned core, more is local-task with one
            pinned worker per core. Devices choose for themselves.
        race_threads: With ``threads=1``, candidates are also checked on this many threads to expose races, or on all
            cores where those are fewer; 1 is off.
        race_calls: Calls of that check, or with several threads further calls of the first check, fewer where they take
            longer than ``patience_s``; a race shows in only some.
        call_timeout_s: Shortest patience for one call; a slower baseline raises it.
        timeout_factor: A candidate may take this many times the baseline's time per call.
        baseline_timeout_s: Patience for preparing a task: inputs, the baseline's results and their repetition.
        sample_s: Shortest sample: short programs are called often enough to fill it.
        fewest_calls, most_calls: Calls of a sample, however long or short they are.
        sample_overhead_s: Rough seconds that a sample takes besides its calls.
        min_samples: Pairs below which no program is ranked, except a clear loser; 6 give 95 % intervals.
        fewest_samples: The same where min_samples would take longer than ``patience_s``.
        patience_s: Seconds that the pairs of a candidate may take before fewer will do.
        pairs_per_baseline: Most pairs that one sample of the baseline serves where a call takes 0.1 s or more.
        budget_s: Seconds of sampling per right candidate, on average: what losers leave goes to near-ties.
        precision: Relative width of the interval of the ratio at which a candidate is known well enough.
        fixed: Every candidate that is no clear loser gets as many pairs as its budget holds by its first calls, however
            narrow its interval is by then: an interval that ends the sampling may cover less than it says.
        slow_factor: A candidate this many times slower than the best is a clear loser after two pairs.
        hopeless_factor: A candidate whose first check shows it this many times slower than the baseline is checked no
            further and timed by one pair: it cannot win (baselines below 2 ms are too short to tell). Where that pair
            shows it faster than that, it is checked in full.
        calibration_tolerance: Relative excess of the calibration kernel's time that counts as a disturbance.
        seed: Decides the order inside pairs and of candidates.
    """

    driver: str = LOCAL
    threads: int = 1
    race_threads: int = 4
    race_calls: int = 4
    call_timeout_s: float = 1.0
    timeout_factor: float = 20.0
    baseline_timeout_s: float = 120.0
    sample_s: float = 2e-3
    fewest_calls: int = 1
    most_calls: int = 1_000_000
    sample_overhead_s: float = 0.0
    min_samples: int = 6
    fewest_samples: int = 2
    patience_s: float = 5.0
    pairs_per_baseline: int = 16
    budget_s: float = 0.15
    precision: float = 0.015
    fixed: bool = False
    slow_factor: float = 2.0
    hopeless_factor: float = 4.0
    calibration_tolerance: float = 0.08
    seed: int = 0

    @classmethod
    def for_device(cls, driver: str, *, threads: int = 1, seed: int = 0) -> RunnerOptions:
        """Return the options for tuning on a driver.

        On a device shaders have to be compiled, and a sample is a few processes: a pair takes about a second, and
        two pairs have to be enough for most candidates.
        """
        options = cls(driver=driver, threads=threads, seed=seed)
        if options.is_local:
            return options
        return replace(
            options,
            call_timeout_s=30.0,
            sample_s=0.06,
            fewest_calls=24,
            most_calls=64,
            sample_overhead_s=0.3,
            min_samples=3,
            patience_s=10.0,
            budget_s=2.5,
            precision=0.02,
            slow_factor=1.5,
            hopeless_factor=8.0,
        )

    @classmethod
    def final(cls, driver: str, *, threads: int = 1, seed: int = 0) -> RunnerOptions:
        """Return the options for measuring few programs well on a driver: what is decided by, and what is reported.

        Their intervals cover 95 %: the number of pairs does not depend on what is seen, it is 6 at least, and every
        pair has a sample of the baseline of its own.
        """
        options = cls.for_device(driver, threads=threads, seed=seed)
        if options.is_local:
            options = replace(options, budget_s=1.0, min_samples=20)
        else:
            options = replace(options, budget_s=8.0, min_samples=8)
        return replace(options, fixed=True, fewest_samples=6, patience_s=30.0, pairs_per_baseline=1)

    @property
    def is_local(self) -> bool:
        """Whether programs run on the CPU, in the runner process."""
        return self.driver == LOCAL

    def calls(self, call_s: float) -> int:
        """Return how many calls make a sample of a program that takes so long per call."""
        return min(max(self.fewest_calls, ceil(self.sample_s / call_s)), self.most_calls)

    def timeout_s(self, baseline_call_s: float) -> float:
        """Return how long one call of a candidate may take."""
        return max(self.call_timeout_s, self.timeout_factor * baseline_call_s)
