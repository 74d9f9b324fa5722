"""The outcome of one candidate after it was compiled, run and checked, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from mlir_sched.errors import Failure


@dataclass(frozen=True)
class Timing:
    """Robust summary of the times of one program, measured interleaved with a baseline.

    Attributes:
        median_s: Median seconds per call.
        low_s, high_s: 95 % confidence interval of the median, seconds.
        samples: Number of samples kept; 0 for a time that is estimated and not measured.
        ratio: Median of baseline time / own time over paired samples; above 1 is faster than the baseline.
        ratio_low, ratio_high: 95 % confidence interval of ``ratio`` (``RunnerOptions.final``); an interval of a search,
            whose sampling stops when the interval is narrow or after few pairs, covers less.
        disturbed: Samples thrown away because the machine was busy.
    """

    median_s: float
    low_s: float
    high_s: float
    samples: int
    ratio: float
    ratio_low: float
    ratio_high: float
    disturbed: int = 0

    @property
    def is_estimated(self) -> bool:
        """Whether the times are estimated and not measured."""
        return self.samples == 0

    def scaled(self, factor: float) -> Timing:
        """Return this timing with all ratios multiplied by a factor: the ratio of its baseline to another one."""
        low, high = self.ratio_low * factor, self.ratio_high * factor
        return replace(self, ratio=self.ratio * factor, ratio_low=low, ratio_high=high)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON data."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Timing:
        """Return the timing that ``to_json`` described."""
        return Timing(**data)


def as_untuned(timing: Timing) -> Timing:
    """Return a timing of untuned code relative to itself: every ratio is exactly 1."""
    return replace(timing, ratio=1.0, ratio_low=1.0, ratio_high=1.0)


@dataclass(frozen=True)
class Outcome:
    """A timing or a failure, never both.

    Attributes:
        timing: Present when the candidate is applied, right and timed.
        failure: Present when the candidate is not.
        binary_hash: SHA-256 of the compiled executable code, empty when it was not compiled. Two candidates with
            equal hashes are the same program.
    """

    timing: Timing | None
    failure: Failure | None
    binary_hash: str = ""

    def __post_init__(self) -> None:
        if (self.timing is None) == (self.failure is None):
            raise ValueError("an outcome has a timing or a failure, and not both")

    @property
    def is_lasting(self) -> bool:
        """Whether later runs need no new try: a timing, or a failure for which the script is to blame."""
        return self.failure is None or self.failure.kind.is_lasting
