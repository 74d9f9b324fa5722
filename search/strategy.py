"""The contract between a search strategy, the design space it searches and the measurements it learns from."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from mlir_sched.errors import IllegalTraceError
from mlir_sched.models.shared_model import Featured, SharedCostModel
from mlir_sched.trace import Trace

DRAWN = 4
"""Traces that are drawn, compiled and estimated per trace that is measured."""


class SearchSpace(Featured, Protocol):
    """The candidates of one task on one target, and what a model reads of them."""

    @property
    def sketches(self) -> tuple[str, ...]:
        """Names of the sketches, in a fixed order; at least one."""
        ...

    def sample(self, rng: np.random.Generator, sketch: str | None = None) -> Trace:
        """Draw a legal trace of the given sketch, or of a sketch that the space chooses.

        Raises:
            IllegalTraceError: This draw is not legal; another may be.
        """
        ...

    def repaired(self, trace: Trace) -> Trace:
        """Return the legal trace nearest to a trace whose decisions were changed; the result is deterministic.

        Raises:
            IllegalTraceError: The decisions cannot be repaired.
        """
        ...


def repaired_in(space: SearchSpace, traces: Iterable[Trace]) -> list[Trace]:
    """Return the distinct traces that a space makes of traces of another space, or whose decisions were changed.

    Those that cannot be repaired are left out.
    """
    repaired = dict[str, Trace]()
    for trace in traces:
        with suppress(IllegalTraceError):
            legal = space.repaired(trace)
            repaired.setdefault(legal.key, legal)
    return list(repaired.values())


@dataclass(frozen=True)
class Observation:
    """The result of one candidate.

    Attributes:
        seconds: Seconds per call, > 0, lower is better; None when it failed.
        proven: Whether it is known to be right. Others are not made from a candidate that is not, unless it is slower
            than one that is.
    """

    trace: Trace
    seconds: float | None
    proven: bool = True

    def __post_init__(self) -> None:
        if self.seconds is not None and not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ValueError(f"seconds must be positive and finite, or None for a failure, but got {self.seconds}")


class SearchStrategy(ABC):
    """A strategy that chooses the candidates to measure next.

    Suggestions depend only on the space, the rng's state and the traces observed or excluded: a run repeated with the
    same seed and the same measurements suggests the same traces in any process. (An interrupted run thus continues
    exactly where it stopped, once its rounds are suggested again and their results taken from the records.) The order
    of observations between two calls of ``suggest`` does not matter.

    Args:
        model: The cost model that all tasks of a search share, for a strategy that uses one (``model.task(space)``).

    Attributes:
        space, rng: What is searched, and with what.
        observed: The results that are known, by the key of the trace.
        preselected: Whether estimates of a compiled candidate's time may choose the first candidates among more traces
            than are asked for, where a target has such estimates.
    """

    preselected: ClassVar[bool] = True

    def __init__(self, space: SearchSpace, rng: np.random.Generator, model: SharedCostModel | None = None) -> None:
        del model
        self.space = space
        self.rng = rng
        self.observed: dict[str, Observation] = {}
        self._seen: set[str] = set()  # for membership only: its order is not reproducible

    def suggest(self, count: int) -> list[Trace]:
        """Return up to ``count`` distinct legal traces that were never suggested, observed or excluded.

        The list is shorter when the space runs out of new traces, and empty when the strategy finds no new trace. The
        search for a new trace is bounded, so a few undiscovered traces may remain.

        Raises:
            ValueError: ``count`` is negative.
        """
        if count < 0:
            raise ValueError(f"count must be >= 0, but got {count}")
        traces = self.propose(count) if count else []
        self._seen.update(trace.key for trace in traces)
        return traces

    def observe(self, observations: Sequence[Observation]) -> None:
        """Learn the results of candidates, suggested or not (older records may come before the first ``suggest``).

        A later observation of the same trace replaces the earlier one.
        """
        self.observed |= {observation.trace.key: observation for observation in observations}
        self._seen.update(observation.trace.key for observation in observations)

    @property
    def rank_accuracy(self) -> tuple[float, ...]:
        """``pair_accuracy`` of the strategy's model on each round, before the model learnt from that round.

        0.5 is chance, 1 is perfect. Rounds before the model could predict are left out; without a model there are none.
        """
        return ()

    def exclude(self, traces: Iterable[Trace]) -> None:
        """Never suggest these traces, for instance because they make a program that is already known."""
        self.exclude_keys(trace.key for trace in traces)

    def exclude_keys(self, keys: Iterable[str]) -> None:
        """Never suggest the traces with these keys."""
        self._seen.update(keys)

    def release(self, traces: Iterable[Trace]) -> None:
        """Let traces that were suggested, and are not tried now, be suggested again; what was observed stays known."""
        self._seen.difference_update(trace.key for trace in traces if trace.key not in self.observed)

    @abstractmethod
    def propose(self, count: int) -> list[Trace]:
        """Return the traces that ``suggest`` promises, for ``count`` >= 1; what a strategy of your own has to do."""

    def unseen(self, traces: Iterable[Trace]) -> list[Trace]:
        """Return the distinct new traces among traces whose decisions were changed, each repaired.

        Those that cannot be repaired are left out.
        """
        return [trace for trace in repaired_in(self.space, traces) if trace.key not in self._seen]

    def sample_unseen(self, count: int, sketches: Sequence[str | None], taken: Iterable[str] = ()) -> list[Trace]:
        """Return up to ``count`` distinct new traces, the sketches taking turns.

        A draw that is illegal or known is repeated. The draws are bounded by ``count`` and the number of known
        traces, so that the last new trace of a small space is found with a chance above 98 %.

        Args:
            sketches: Sketches to draw from; None lets the space choose.
        """
        taken_keys = {key for key in taken if key not in self._seen}
        traces: list[Trace] = []
        for attempt in range(64 + 8 * count + 4 * (len(taken_keys) + len(self._seen))):
            if len(traces) == count:
                break
            trace = self._try_sample(sketches[attempt % len(sketches)])
            if trace is not None and trace.key not in taken_keys and trace.key not in self._seen:
                taken_keys.add(trace.key)
                traces.append(trace)
        return traces

    def _try_sample(self, sketch: str | None) -> Trace | None:
        try:
            return self.space.sample(self.rng, sketch)
        except IllegalTraceError:
            return None


StrategyFactory: TypeAlias = Callable[[SearchSpace, np.random.Generator, SharedCostModel], SearchStrategy]
"""What makes the strategy of each task: a subclass of :class:`SearchStrategy`, for one."""


def preselect(traces: Sequence[Trace], seconds: Sequence[float | None], count: int) -> list[Trace]:
    """Return the most promising traces: the fastest of every sketch, then the fastest of all.

    Every sketch has its turn, because the model may misjudge how sketches compare.

    Args:
        seconds: Estimated seconds per call of each; None where there is no estimate, which comes last.
        count: Traces to return; all are returned where there are no more.
    """
    estimated = {trace.key: math.inf if each is None else each for trace, each in zip(traces, seconds, strict=True)}
    fastest = sorted(traces, key=lambda trace: estimated[trace.key])
    leaders: dict[str, Trace] = {}
    for trace in fastest:
        leaders.setdefault(trace.sketch, trace)
    chosen = {trace.key: trace for trace in (*leaders.values(), *fastest)}
    return list(chosen.values())[:count]


class RandomSearch(SearchStrategy):
    """A strategy that draws distinct traces from the space's own prior, and measures all that it draws."""

    preselected = False

    def propose(self, count: int) -> list[Trace]:
        """See :meth:`SearchStrategy.propose`."""
        return self.sample_unseen(count, (None,))
