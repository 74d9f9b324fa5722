"""Sources: measured tasks that say something of the tasks of a run before their first candidates."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from mlir_sched.corpus.corpus import Corpus
from mlir_sched.corpus.files import task_of, text_of
from mlir_sched.corpus.known_task import KnownTask, default_space
from mlir_sched.corpus.measured_task import MeasuredTask, Measurement
from mlir_sched.corpus.nearest import nearness
from mlir_sched.errors import UserError
from mlir_sched.payload import Dispatch, family_of
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.targets.target import Target
from mlir_sched.trace import Trace

SOURCES_PER_TASK = 5
"""Most sources of a task: a model of two to five other shapes of a family ranked the candidates of a shape alike."""
ROWS_PER_SOURCE, ROWS_PER_RUN = 200, 600
"""Most candidates of one source, and of all: a refit with so many takes less than half a second of one core."""
BEST = 2
"""Fastest candidates of a source that a task tries; of every source there are so many at least."""


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
    """A known task that may say something of others; equal to itself alone."""

    place: Place
    task: KnownTask

    def is_elsewhere(self, target: Target) -> bool:
        """Say whether a store has it of another machine than a target."""
        return self.place is not Place.SHIPPED and self.task.target.machine != target.machine

    @property
    def measured(self) -> MeasuredTask:
        """The task with its candidates, which it must have."""
        measured = self.task.as_measured
        assert measured is not None
        return measured

    @property
    def best(self) -> tuple[Trace, ...]:
        """Its fastest candidates, legal today or not: a task that tries them has them repaired."""
        return tuple(each.trace for each in fastest_first(self.measured.measured) if each.failure is None)[:BEST]


def chosen_sources(
    asked: Iterable[Asked],
    corpora: Mapping[Place, Corpus],
    own: Collection[tuple[str, str]] = (),
    note: Callable[[str], None] = lambda _: None,
) -> tuple[Source, ...]:
    """Return the sources of all tasks (:func:`sources_of`), each once, with as many candidates as are used.

    All sources have equal parts of :data:`ROWS_PER_RUN`, as far as they have as many candidates.

    Args:
        corpora: Where sources come from; of a task in a context that is in several, the first counts.
        own: Key and context of the tasks of the run: their records in the run's own store are no source of tasks on as
            many threads, which use them anyway.
        note: Is told why a source of the user's store, or a shipped one, cannot be read, which costs no more.

    Raises:
        UserError: Another source cannot be read.
    """
    offered, refused = _offered(corpora), set[Source]()

    def is_own(source: Source, each: Asked) -> bool:
        same = source.task.target.cores == each.target.cores
        return same and source.place is Place.RUN and (source.task.key, source.task.context) in own

    def has_candidates(source: Source) -> bool:
        try:
            return source not in refused and source.task.as_measured is not None
        except UserError as error:
            if source.place not in (Place.USER, Place.SHIPPED):
                raise
            refused.add(source)
            note(f"{source.place} is not whole: {error}")
            return False

    found = (sources_of(each, [s for s in offered if not is_own(s, each)], has_candidates) for each in asked)
    chosen = list(dict.fromkeys(source for sources in found for source in sources))
    counts = equal_parts([min(len(source.measured.measured), ROWS_PER_SOURCE) for source in chosen], ROWS_PER_RUN)
    return tuple(_with_rows(source, max(BEST, count)) for source, count in zip(chosen, counts, strict=True))


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


def equal_parts(sizes: Sequence[int], total: int) -> list[int]:
    """Return how many of each of several lots to take, at most ``total``: what small lots leave, large ones get."""
    parts, left = [0] * len(sizes), total
    for rank, index in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        parts[index] = min(sizes[index], left // (len(sizes) - rank))
        left -= parts[index]
    return parts


def dump_sources(sources: Iterable[Source]) -> str:
    """Return sources as text, of which :func:`load_sources` makes them again; times have four digits then."""
    data = [[source.place.value, text_of(source.measured)] for source in sources]
    return base64.b64encode(gzip.compress(json.dumps(data).encode(), mtime=0)).decode()


def load_sources(text: str) -> tuple[Source, ...]:
    """Return the sources of a text.

    Raises:
        UserError: It is none that :func:`dump_sources` made.
    """
    try:
        data = json.loads(gzip.decompress(base64.b64decode(text)))
        return tuple(Source(Place(place), task_of(lines, f"a source from {place}")) for place, lines in data)
    except (OSError, EOFError, zlib.error, ValueError, TypeError) as error:
        raise UserError(f"the sources that a run decided on cannot be read: {error}") from error


def _offered(corpora: Mapping[Place, Corpus]) -> list[Source]:
    """Return all that may be a source: of a task in a context, the first of several."""
    first = dict[tuple[str, str], Source]()
    for place, corpus in corpora.items():
        for task in corpus.known:
            first.setdefault((task.key, task.context), Source(place, task))
    return list(first.values())


def _with_rows(source: Source, count: int) -> Source:
    task = source.measured
    return Source(source.place, replace(task, measured=fastest_and_others(task.measured, count)))
