"""The measured candidates of one dispatch on one machine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from mlir_sched.database.record import Record
from mlir_sched.errors import FailureClass, IllegalTraceError
from mlir_sched.payload import ELEMENT_BITS, Dispatch, LinalgOp, OpKind, family_of
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.features import COUNT, featurise
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
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
class MeasuredTask:
    """The measured candidates of one dispatch on one machine.

    A candidate counts where its trace is legal, as it is, in the default space of the target today. Others are dropped,
    and never repaired: a repaired trace is another candidate, whose time nobody knows. Which traces are legal is found
    with the features, when it is first asked; 15,000 traces take some seconds.

    Attributes:
        key, name: As of ``Task``.
        target: The machine, with the threads that programs ran on.
        context: What the times depend on beside the task (``measuring_context``).
        untuned_s: Seconds per call of the untuned code, > 0.
        measured: All measured candidates, legal today or not, with distinct traces.
        complete: Whether these are all candidates of a part of the design space, and not a sample.
        weight: Calls per run of the program that has the dispatch, >= 1.

    Raises:
        ValueError: Nobody can have measured this, or nothing can be derived from such a dispatch.
    """

    key: str
    name: str
    dispatch: Dispatch
    target: Target
    context: str
    untuned_s: float
    measured: tuple[Measurement, ...]
    complete: bool = False
    weight: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.untuned_s < math.inf:
            raise ValueError(f"the untuned code takes {self.untuned_s!r} s")
        if self.weight < 1:
            raise ValueError(f"a run calls it {self.weight} times")
        if len({each.trace.key for each in self.measured}) < len(self.measured):
            raise ValueError("a candidate was measured twice")
        if self.target.cores < 1:
            raise ValueError(f"a target has {self.target.cores} cores")
        _check(self.dispatch)

    @cached_property
    def family(self) -> str:
        """The family of the dispatch (:func:`~mlir_sched.payload.family_of`)."""
        return family_of(self.dispatch)

    @cached_property
    def sketches(self) -> tuple[str, ...]:
        """Names of the sketches that the default space has for the dispatch today."""
        return self._space.sketches

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
    def dropped(self) -> int:
        """How many candidates do not count."""
        return len(self.measured) - len(self.legal)

    @cached_property
    def _space(self) -> DesignSpace:
        return DesignSpace(default_space(self.target), self.dispatch, self.target)

    @cached_property
    def _legal_rows(self) -> tuple[tuple[Measurement, ...], NDArray[np.float32]]:
        legal, rows = list[Measurement](), list[NDArray[np.float32]]()
        for each in self.measured:
            try:
                rows.append(featurise(self._space.check(each.trace), each.trace.sketch))
            except IllegalTraceError:
                continue
            legal.append(each)
        return tuple(legal), np.array(rows, dtype=np.float32).reshape(-1, COUNT)


@lru_cache(maxsize=8)
def default_space(target: Target) -> Space:
    """Return the default space of a target; tasks share the few spaces that there are."""
    return Space.default(target)


def _check(dispatch: Dispatch) -> None:
    """Raise a ValueError for what no dispatch looks like, whose families, sketches and features cannot be found."""
    if not dispatch.ops or not dispatch.results or not set(dispatch.results) <= set(range(len(dispatch.ops))):
        raise ValueError("not a dispatch: it has no ops, or stores the results of others")
    for index, op in enumerate(dispatch.ops):
        if problem := next(_problems(index, op), ""):
            raise ValueError(f"not a dispatch: op {index}, {op.name}, {problem}")


def _problems(index: int, op: LinalgOp) -> Iterator[str]:
    if op.index != index:
        yield "has another number"
    if len(op.iterator_types) != len(op.extents) or any(extent < 1 for extent in op.extents):
        yield "has loops without an extent"
    if not set(op.iterator_types) <= {"parallel", "reduction"}:
        yield "has loops of no known kind"
    if not op.outputs or (op.kind in (OpKind.CONTRACTION, OpKind.CONVOLUTION) and len(op.inputs) < 2):
        yield "lacks operands"
    for operand in op.operands:
        tensor, exprs = operand.tensor, operand.indexing_map
        if len(exprs) != len(tensor.shape) or any(len(expr.coefficients) != len(op.extents) for expr in exprs):
            yield "has an operand of another rank"
        if tensor.element_type not in ELEMENT_BITS or any(size < 1 for size in tensor.shape):
            yield "has an operand of no known size"
        if operand.producer is not None and not 0 <= operand.producer < index:
            yield "reads what is made later"
        if any(not 0 <= dim < len(tensor.shape) for dim in operand.padded):
            yield "pads a dimension that is not there"
