"""Sources: measured tasks that say something of the tasks of a run before their first candidates."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from mlir_sched.corpus.files import task_of, text_of
from mlir_sched.corpus.known_task import KnownTask, default_space
from mlir_sched.corpus.measured_task import MeasuredTask, Measurement
from mlir_sched.corpus.nearest import nearness
from mlir_sched.errors import IllegalTraceError, UserError
from mlir_sched.payload import Dispatch, family_of
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.targets.target import Target
from mlir_sched.trace import Trace

SOURCES_PER_TASK = 5
"""Most sources of a task: a model of two to five other shapes of a family ranked the candidates of a shape alike."""
BEST = 2
"""Fastest candidates of a source that a task tries; of every source there are so many at least."""
LOOKED_AT = 8
"""Fastest candidates of a task of which one has to be legal today, or the task is no source: where modules have gained
a decision, none is."""


class Place(StrEnum):
    """Where a source comes from."""

    RUN = "this store"
    GIVEN = "the given store"
    USER = "your store"
    SHIPPED = "shipped"


OTHER_MACHINES = "other machines"
"""What is said of sources in stores that were measured on other machines, or with other versions of IREE's runtime."""


@dataclass(frozen=True)
class Asked:
    """A dispatch for which sources are looked for, with the target that its programs run on."""

    dispatch: Dispatch
    target: Target

    @cached_property
    def space(self) -> DesignSpace:
        """The default space of the dispatch."""
        return DesignSpace(default_space(self.target), self.dispatch, self.target)


@dataclass(frozen=True, eq=False)
class Source:
    """A known task that may say something of others; equal to itself alone.

    Attributes:
        teaches: Whether models learn from its candidates; if not, its best are tried alone.
    """

    place: Place
    task: KnownTask
    teaches: bool = True

    def is_elsewhere(self, target: Target) -> bool:
        """Say whether a store has it of another machine than a target."""
        return self.place is not Place.SHIPPED and self.task.target.machine != target.machine

    @property
    def measured(self) -> MeasuredTask:
        """The task with its candidates, which it must have."""
        measured = self.task.as_measured
        assert measured is not None
        return measured

    @cached_property
    def candidates(self) -> tuple[Measurement, ...]:
        """Its candidates of the sketches that the default space has today, the fastest first."""
        sketches = self.task.sketches
        return tuple(each for each in fastest_first(self.measured.measured) if each.trace.sketch in sketches)

    @cached_property
    def is_of_use(self) -> bool:
        """Whether one of its fastest candidates is legal today.

        Raises:
            UserError: They cannot be read.
        """
        if self.task.as_measured is None:
            return False
        fastest = (each.trace for each in self.candidates[:LOOKED_AT] if each.failure is None)
        return any(map(self._is_legal, fastest))

    @property
    def best(self) -> tuple[Trace, ...]:
        """Its fastest candidates, legal today or not: a task that tries them has them repaired."""
        return tuple(each.trace for each in self.candidates if each.failure is None)[:BEST]

    def _is_legal(self, trace: Trace) -> bool:
        try:
            self.task.space.check(trace)
        except IllegalTraceError:
            return False
        return True


def sources_of(
    asked: Asked, offered: Iterable[Source], is_of_use: Callable[[Source], bool] = lambda _: True
) -> tuple[Source, ...]:
    """Return up to :data:`SOURCES_PER_TASK` sources of a task: others of its family, the nearest first.

    What this machine measured comes before what others did, and that before what is shipped; among these the order is
    :func:`~mlir_sched.corpus.nearest.nearness`. Each dispatch is there once.
    """
    family, nearest, target = family_of(asked.dispatch), nearness(asked.dispatch, asked.target), asked.target
    of_family = [each for each in offered if each.task.family == family and each.task.target.name == target.name]
    found = dict[Dispatch, Source]()
    of_family.sort(key=lambda each: (each.place is Place.SHIPPED, each.is_elsewhere(target), *nearest(each.task)))
    for source in of_family:
        if len(found) == SOURCES_PER_TASK:
            break
        if source.task.dispatch not in found and is_of_use(source):
            found[source.task.dispatch] = source
    return tuple(found.values())


def fastest_first(measured: Iterable[Measurement]) -> list[Measurement]:
    """Return candidates in the order of their times, failures last."""
    return sorted(measured, key=lambda each: (each.seconds, each.trace.key))


def fastest_and_others(measured: Iterable[Measurement], count: int) -> tuple[Measurement, ...]:
    """Return at most ``count`` candidates, the fastest first: half are the fastest, the others spread evenly."""
    ordered = fastest_first(measured)
    if len(ordered) <= count:
        return tuple(ordered)
    fastest = (count + 1) // 2
    others = np.linspace(fastest, len(ordered) - 1, count - fastest).round().astype(int)
    return *ordered[:fastest], *(ordered[index] for index in others)


def dump_sources(sources: Iterable[Source]) -> str:
    """Return sources as text, of which :func:`load_sources` makes them again; times have four digits then."""
    data = [[source.place.value, source.teaches, text_of(source.measured)] for source in sources]
    return base64.b64encode(gzip.compress(json.dumps(data).encode(), mtime=0)).decode()


def load_sources(text: str) -> tuple[Source, ...]:
    """Return the sources of a text.

    Raises:
        UserError: It is none that :func:`dump_sources` made.
    """
    try:
        data = json.loads(gzip.decompress(base64.b64decode(text)))
        return tuple(
            Source(Place(place), task_of(lines, f"a source from {place}"), bool(teaches))
            for place, teaches, lines in data
        )
    except (OSError, EOFError, zlib.error, ValueError, TypeError) as error:
        raise UserError(f"the sources that a run decided on cannot be read: {error}; start anew (--fresh)") from error
