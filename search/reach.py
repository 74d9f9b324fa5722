"""What a task can reach, as others of its family make believe before its first candidate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mlir_sched.models.cost_model import REACH
from mlir_sched.search.task_scheduler import Demand, best_rates

LEAST = 0.01
"""Least spread: times differ by as much when they are repeated."""


@dataclass(frozen=True)
class Shown:
    """What a task has shown that was searched before.

    Attributes:
        demand: What a call computes and moves.
        untuned_s, best_s: Seconds per call without a script, and with the best one, > 0.
    """

    demand: Demand
    untuned_s: float
    best_s: float

    @property
    def log_ratio(self) -> float:
        """Logarithm of the time with the best script over that without one; at most 0, as it need not be used."""
        return min(0.0, math.log(self.best_s / self.untuned_s))


@dataclass(frozen=True)
class Reach:
    """A belief of the logarithm of the best candidate's time over the untuned code's, as a normal distribution.

    Attributes:
        mean, spread: Of the distribution; the mean is at most 0.
        others: How many tasks make believe so.
    """

    mean: float
    spread: float
    others: int

    def error(self, found: Shown) -> float:
        """Return how much larger the logarithm is in the end than it was believed to be."""
        return found.log_ratio - self.mean

    def holds(self, found: Shown) -> bool:
        """Say whether what a search found is in the 80 % interval of the belief."""
        return abs(self.error(found)) <= REACH * self.spread

    @staticmethod
    def of(demand: Demand, untuned_s: float, others: Sequence[Shown]) -> Reach | None:
        """Return what others make believe of a task; None where they are fewer than two.

        The task is believed to reach the best rates of the others, as a roofline. How uncertain that is follows from
        the others themselves: from what the rest of them would have made believe of each.

        Args:
            untuned_s: Seconds per call of the task without a script, > 0.
            others: Tasks of its family.
        """
        if len(others) < 2:
            return None
        rest = [[*others[:at], *others[at + 1 :]] for at in range(len(others))]
        errors = [
            each.log_ratio - _at_best_rates(each.demand, each.untuned_s, of)
            for each, of in zip(others, rest, strict=True)
        ]
        mean_square = sum(error**2 for error in errors) / len(errors)
        spread = math.sqrt(mean_square * (1 + 1 / len(others)))
        return Reach(_at_best_rates(demand, untuned_s, others), max(LEAST, spread), len(others))


def _at_best_rates(demand: Demand, untuned_s: float, others: Sequence[Shown]) -> float:
    """Return the logarithm for a task that comes to the best rates of others."""
    rates = best_rates([(each.demand, each.best_s) for each in others])
    return Shown(demand, untuned_s, demand.seconds(*rates) or untuned_s).log_ratio
