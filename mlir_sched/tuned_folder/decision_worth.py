"""An emitted script beside the other candidates of its search, as plain data of the summary and the report."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from mlir_sched.sampling import Value


class RelativeSpeed(StrEnum):
    """How a candidate compares with the script. The verdict that says most for the script comes first."""

    SLOWER = "slower"
    """The candidate takes longer than the script, and the two intervals do not overlap."""
    UNCLEAR = "may be as fast"
    """The candidate takes longer than the script, but the two intervals overlap."""
    AS_FAST = "as fast"
    """The difference in time is smaller than the least gain for which a script is used."""
    SAME_CODE = "the same code"
    """The candidate compiles to the same code as the script."""


@dataclass(frozen=True)
class Alternative:
    """A candidate of the search beside the script that was emitted.

    Attributes:
        cost: Its time / the script's time, both as the search measured them; above 1 the candidate is slower.
        cost_low, cost_high: The least and the largest cost within the intervals of both measurements.
        verdict: How both compare.
        changes: Its decisions with other values than in the script, by name; None for a decision that it does not have.
            Of a candidate of another sketch these are all its decisions.
    """

    cost: float
    cost_low: float
    cost_high: float
    verdict: RelativeSpeed
    changes: Mapping[str, Value | None]


@dataclass(frozen=True)
class DecisionWorth:
    """What is known of the other values of one decision.

    Attributes:
        name: The decision.
        value: Its value in the script.
        fixed: Whether the other decisions of the script leave no other value.
        measured: Valid candidates of the script's sketch in which the decision has another value.
        failed: Those that failed.
        best: The fastest of those that were measured, whatever their other decisions are; None when there is none.
        alone: The fastest of those in which all other decisions are the script's; None when there is none.
    """

    name: str
    value: Value
    fixed: bool
    measured: int
    failed: int
    best: Alternative | None
    alone: Alternative | None


@dataclass(frozen=True)
class SketchWorth:
    """What is known of another sketch of the same dispatch.

    Attributes:
        name: The sketch.
        measured: Valid candidates of it.
        failed: Those that failed.
        best: The fastest one; None when there is none.
    """

    name: str
    measured: int
    failed: int
    best: Alternative | None


@dataclass(frozen=True)
class Ablation:
    """The script of a dispatch against the other candidates of its search; nothing was measured for it.

    Attributes:
        ratio: Speed-up of the script as the search measured it. The script was chosen for this figure, which may
            therefore be above the one that is reported for it.
        decisions: Its decisions by the verdict on the fastest candidate with another value and by the cost of it, the
            largest cost first; those without such a candidate come last.
        sketches: The other sketches of the dispatch, the fastest first; those without a measured candidate come last.
    """

    ratio: float
    decisions: tuple[DecisionWorth, ...]
    sketches: tuple[SketchWorth, ...]
