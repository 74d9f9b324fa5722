"""The measured candidates of one dispatch on one machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mlir_sched.corpus.known_task import KnownTask
from mlir_sched.database.record import Record
from mlir_sched.errors import FailureClass, IllegalTraceError
from mlir_sched.search import Demand, Shown
from mlir_sched.space.features import COUNT
from mlir_sched.trace import Trace


class Origin(StrEnum):
    """Why a candidate was measured."""

    RANDOM = "random"
    """It was drawn at random, whatever was known."""
    MODEL = "model"
    """A search chose it: its first candidates at random, the others by a model."""
    GIVEN = "given"
    """It was chosen by what an earlier measurement said of it."""


@dataclass(frozen=True)
class Measurement:
    """One measured candidate.

    Attributes:
        trace: Its decisions.
        seconds: Seconds per call on the scale of the untuned code's time, > 0; infinite where it failed.
        ratio: How many times as fast as the untuned code it is, with the ends of the interval: (ratio, low, high); None
            where it failed.
        failure: Why it failed; None where it did not.
        work_s: Seconds that compiling, checking and timing it took: those of its round divided by the candidates; None
            where nobody knows.

    Raises:
        ValueError: Nobody can have measured this.
    """

    trace: Trace
    seconds: float
    ratio: tuple[float, float, float] | None
    failure: FailureClass | None
    origin: Origin
    work_s: float | None = None

    def __post_init__(self) -> None:
        failed = self.failure is not None
        numbers = self.ratio or ()
        if failed != (self.ratio is None) or failed != (self.seconds == math.inf):
            raise ValueError("a candidate has either a time with its ratio, or a failure")
        if not failed and not all(0 < number < math.inf for number in (self.seconds, *numbers)):
            raise ValueError(f"nobody can have measured {self.seconds!r} s and the ratio {numbers}")
        if self.work_s is not None and not 0 <= self.work_s < math.inf:
            raise ValueError(f"no candidate takes {self.work_s!r} s of work")

    @staticmethod
    def of(record: Record, untuned_s: float, origin: Origin) -> Measurement:
        """Return what a record says of its trace, which it must have.

        Args:
            untuned_s: Seconds per call of the untuned code.
        """
        assert record.trace is not None
        timing, failure = record.outcome.timing, record.outcome.failure
        if timing is None:
            return Measurement(record.trace, math.inf, None, failure.kind if failure else None, origin)
        ratio = timing.ratio, timing.ratio_low, timing.ratio_high
        return Measurement(record.trace, untuned_s / timing.ratio, ratio, None, origin)


@dataclass(frozen=True)
class MeasuredTask(KnownTask):
    """The measured candidates of one dispatch on one machine.

    A candidate counts where its trace is legal, as it is, in the default space of the target today. Others are dropped,
    and never repaired: a repaired trace is another candidate, whose time nobody knows. Which traces are legal is found
    with the features, when it is first asked; 15,000 traces take some seconds.

    Attributes:
        untuned_s: Seconds per call of the untuned code, > 0.
        measured: All measured candidates, legal today or not, with distinct traces.
        complete: Whether these are all candidates of a part of the design space, and not a sample.
        weight: Calls per run of the program that has the dispatch, >= 1.

    Raises:
        ValueError: Nobody can have measured this.
    """

    untuned_s: float
    measured: tuple[Measurement, ...]
    complete: bool = False
    weight: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.untuned_s < math.inf:
            raise ValueError(f"the untuned code takes {self.untuned_s!r} s")
        if self.weight < 1:
            raise ValueError(f"a run calls it {self.weight} times")
        if len({each.trace.key for each in self.measured}) < len(self.measured):
            raise ValueError("a candidate was measured twice")

    @property
    def as_measured(self) -> MeasuredTask:
        """The task itself."""
        return self

    @property
    def legal(self) -> tuple[Measurement, ...]:
        """The candidates that count, in the order of ``measured``; the following have one entry for each of them."""
        return self._legal_rows[0]

    @property
    def traces(self) -> tuple[Trace, ...]:
        """Their decisions."""
        return tuple(each.trace for each in self.legal)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Their seconds per call, [n]; infinite where they failed."""
        return np.array([each.seconds for each in self.legal], dtype=np.float64)

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Why each was measured."""
        return tuple(each.origin for each in self.legal)

    def features(self) -> NDArray[np.float32]:
        """Return their features, [n, ``space.features.COUNT``]."""
        return self._legal_rows[1]

    @property
    def shown(self) -> Shown | None:
        """What its best candidate has shown, legal today or not; None where all failed."""
        best_s = min((each.seconds for each in self.measured), default=math.inf)
        return Shown(Demand.of(self.dispatch), self.untuned_s, best_s) if best_s < math.inf else None

    @property
    def dropped(self) -> int:
        """How many candidates do not count."""
        return len(self.measured) - len(self.legal)

    @cached_property
    def _legal_rows(self) -> tuple[tuple[Measurement, ...], NDArray[np.float32]]:
        legal, rows = list[Measurement](), list[NDArray[np.float32]]()
        for each in self.measured:
            try:
                rows.append(self.space.features([each.trace])[0])
            except IllegalTraceError:
                continue
            legal.append(each)
        return tuple(legal), np.array(rows, dtype=np.float32).reshape(-1, COUNT)
