"""The outcome of one candidate after it was compiled, run and checked, as plain data."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from numbers import Integral
from typing import Any

from mlir_sched.errors import Failure, FailureClass


class Verdict(StrEnum):
    """What the numeric checks say of a program."""

    RIGHT = "right"
    """It passed every check, or it is what others are checked against."""
    WRONG = "wrong"
    """It failed a check."""
    NOT_CHECKED = "not_checked"
    """A check is missing, for any reason. This is never taken for right."""

    @property
    def words(self) -> str:
        """The verdict as it is printed behind figures."""
        return _WORDS[self]


_WORDS = {Verdict.RIGHT: "numbers checked", Verdict.WRONG: "NUMBERS WRONG", Verdict.NOT_CHECKED: "NUMBERS NOT CHECKED"}


def of_all(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on the whole of some parts: right where every part is; not checked where there is none."""
    found = set(verdicts)
    if Verdict.WRONG in found:
        return Verdict.WRONG
    return Verdict.RIGHT if found == {Verdict.RIGHT} else Verdict.NOT_CHECKED


LARGEST = sys.float_info.max
"""The largest number that is finite."""


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

    @staticmethod
    def estimated(seconds: float, untuned_s: float) -> Timing:
        """Return an estimated time as a timing without samples, relative to an estimate of the baseline's time."""
        ratio = untuned_s / seconds
        return Timing(seconds, seconds, seconds, 0, ratio, ratio, ratio)

    @property
    def is_estimated(self) -> bool:
        """Whether the times are estimated and not measured."""
        return self.samples == 0

    def scaled(self, factor: float) -> Timing:
        """Return this timing with all ratios multiplied by a factor: the ratio of its baseline to another one."""
        low, high = self.ratio_low * factor, self.ratio_high * factor
        return replace(self, ratio=self.ratio * factor, ratio_low=low, ratio_high=high)

    def over(self, other: Timing) -> Timing:
        """Return this timing relative to another one of the same baseline: the interval holds if both others do."""
        low, high = self.ratio_low / other.ratio_high, self.ratio_high / other.ratio_low
        return replace(self, ratio=self.ratio / other.ratio, ratio_low=low, ratio_high=high)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON data."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Timing:
        """Return the timing that ``to_json`` described.

        Raises:
            ValueError: A field is missing or unknown, a number is not finite or not positive, or an interval ends
                before it begins.
        """
        try:
            timing = Timing(**data)
        except TypeError as error:
            raise ValueError(f"not a timing: {error}") from error
        timing.check()
        return timing

    def check(self) -> None:
        """Raise a ValueError for what nobody can have measured; see :meth:`from_json`."""
        for name in ("samples", "disturbed"):
            count = getattr(self, name)
            if isinstance(count, bool) or not isinstance(count, Integral) or count < 0:
                raise ValueError(f"not a timing: {name} is {count!r}")
        for name in ("median_s", "low_s", "high_s", "ratio", "ratio_low", "ratio_high"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= LARGEST:
                raise ValueError(f"not a timing: {name} is {number!r}, not a positive number")
        if self.low_s > self.high_s or self.ratio_low > self.ratio_high:
            raise ValueError("not a timing: an interval ends before it begins")


@dataclass(frozen=True)
class LoadCost:
    """What loading a program takes, in a process that has loaded no other one.

    Attributes:
        seconds: Seconds from the compiled module to the first results, less those of a later call: what is done once.
        peak_bytes: Most resident memory from there to the end of the first call, beyond that of the process before.
        resident_bytes: Resident memory that later calls need, beyond that of the process before: pages of files of
            weights count where these calls read them.
    """

    seconds: float
    peak_bytes: int
    resident_bytes: int

    @staticmethod
    def of(data: Mapping[str, Any]) -> LoadCost:
        """Return the cost with the fields of some JSON data.

        Raises:
            KeyError, TypeError, ValueError, OverflowError: The data are none of a cost.
        """
        return LoadCost(float(data["seconds"]), int(data["peak_bytes"]), int(data["resident_bytes"]))


def as_untuned(timing: Timing) -> Timing:
    """Return a timing of untuned code relative to itself: every ratio is exactly 1."""
    return replace(timing, ratio=1.0, ratio_low=1.0, ratio_high=1.0)


def verdict_of(failure: Failure) -> Verdict:
    """Return what a failure says of the numbers: any failure but a wrong result leaves them unchecked."""
    return Verdict.WRONG if failure.kind is FailureClass.WRONG_RESULT else Verdict.NOT_CHECKED


@dataclass(frozen=True)
class Judged:
    """A timing or a failure, never both, with the verdict on the numbers.

    Attributes:
        timing: Present when the program is applied and timed, and not known to be wrong.
        failure: Present when the program is not.
        verdict: What the checks say; a failure says it, too.
    """

    timing: Timing | None
    failure: Failure | None
    verdict: Verdict = field(default=Verdict.NOT_CHECKED, kw_only=True)

    def __post_init__(self) -> None:
        if (self.timing is None) == (self.failure is None):
            raise ValueError("an outcome has a timing or a failure, and not both")
        if self.failure is not None:
            object.__setattr__(self, "verdict", verdict_of(self.failure))
        elif self.verdict is Verdict.WRONG:
            raise ValueError("what is wrong has a failure and no timing")

    @property
    def valid(self) -> Timing | None:
        """The timing of a program that may be chosen, kept, built upon or compared with; None for any other.

        The program is right. Where nothing is run, and all times are estimated, an estimate counts.
        """
        if self.timing is not None and (self.verdict is Verdict.RIGHT or self.timing.is_estimated):
            return self.timing
        return None

    @property
    def why_not_valid(self) -> str:
        """Why the program is not valid; empty when it is."""
        if self.failure is not None:
            return f"{self.failure.kind}: {self.failure.message}"
        return "" if self.valid is not None else "its numbers were not checked"


@dataclass(frozen=True)
class Outcome(Judged):
    """What became of one candidate.

    Attributes:
        binary_hash: SHA-256 of the compiled executable code, empty when it was not compiled. Two candidates with
            equal hashes are the same program.
    """

    binary_hash: str = ""

    @property
    def is_lasting(self) -> bool:
        """Whether later runs need no new try: a timing, or a failure for which the script is to blame."""
        return self.failure is None or self.failure.kind.is_lasting
