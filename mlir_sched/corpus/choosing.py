"""Which sources a run begins from, and from how many of their candidates its cost models learn."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from mlir_sched.corpus.corpus import Corpus
from mlir_sched.corpus.sources import BEST, Asked, Place, Source, fastest_and_others, sources_of
from mlir_sched.database.engine import StoreOutageError
from mlir_sched.errors import UserError

ROWS_PER_SOURCE, ROWS_PER_RUN = 200, 600
"""Most candidates of one source, and of all, that a model learns from: a refit takes less than half a second of one
core."""
LEAST_ROWS = 12
"""Fewest candidates of a source that a model learns from, unless it has fewer. It bounds how many sources teach a model
where there are many: fewer candidates of more dispatches ranked those of another one as well or better."""
FEW = 8
"""A model learns from a source with fewer candidates only where no source of the task has as many: times are compared
within a source alone, so that few of them say little."""
LENDERS = 2
"""Nearest sources of a task whose best candidates are kept for it, whether models learn from these sources or not."""


def chosen_sources(
    asked: Iterable[Asked],
    corpora: Mapping[Place, Corpus],
    own: Collection[tuple[str, str]] = (),
    note: Callable[[str], None] = lambda _: None,
) -> tuple[Source, ...]:
    """Return the sources of all tasks (:func:`sources_of`), each once, with the candidates that are used.

    These are as many as :func:`divided` says, and the best of the :data:`LENDERS` nearest sources of each task.

    Args:
        corpora: Where sources come from; of a task that is in several with candidates, the first counts.
        own: Key and context of the tasks of the run. Where the run's own store has candidates of one, tasks on as many
            threads use these anyway: neither they nor copies of them are a source.
        note: Is told, once per place, why sources of the user's store or shipped ones cannot be read, which costs no
            more.

    Raises:
        UserError: Another source cannot be read.
    """
    offered = [Source(place, task) for place, corpus in corpora.items() for task in corpus.known]
    readable = _Readable(offered, own, note)
    nearest, teaching = list[Sequence[Source]](), list[Sequence[Source]]()
    for each in dict.fromkeys(asked):
        nearest.append(sources_of(each, offered, partial(readable.is_for, each)))
        teaching.append(sources_of(each, offered, partial(readable.is_for, each, least=FEW)) or nearest[-1])
    rows = divided(teaching)
    lenders = (source for sources in nearest for source in sources[:LENDERS])
    return tuple(_cut(source, rows.get(source, 0)) for source in dict.fromkeys((*rows, *lenders)))


def divided(ranked: Iterable[Sequence[Source]]) -> dict[Source, int]:
    """Return from how many of their candidates models learn, by source: parts of :data:`ROWS_PER_RUN`.

    Parts are equal as far as sources have as many candidates, and :data:`LEAST_ROWS` at least. Sources for which this
    leaves nothing are missing. Each family has one source before any has a second one, and then as many as its share of
    the tasks; in a family, a source comes the earlier, the nearer it is to tasks, and the more these are.

    Args:
        ranked: The sources of each task, the nearest first.
    """
    worth, tasks = defaultdict[Source, float](float), Counter[str]()
    for sources in ranked:
        tasks.update(source.task.family for source in sources[:1])
        for rank, source in enumerate(sources, start=1):
            worth[source] += 1 / rank
    turns, order = Counter[str](), dict[Source, tuple[bool, float]]()
    for source in sorted(worth, key=worth.__getitem__, reverse=True):
        family = source.task.family
        turns[family] += 1
        order[source] = turns[family] > 1, -tasks[family] / turns[family]
    left, teaching = ROWS_PER_RUN, list[Source]()
    for source in sorted(order, key=order.__getitem__):
        left -= min(len(source.candidates), LEAST_ROWS)
        if left < 0:
            break
        teaching.append(source)
    counts = equal_parts([min(len(source.candidates), ROWS_PER_SOURCE) for source in teaching], ROWS_PER_RUN)
    return dict(zip(teaching, counts, strict=True))


def equal_parts(sizes: Sequence[int], total: int) -> list[int]:
    """Return how many of each of several lots to take, at most ``total``: what small lots leave, large ones get."""
    parts, left = [0] * len(sizes), total
    for rank, index in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        parts[index] = min(sizes[index], left // (len(sizes) - rank))
        left -= parts[index]
    return parts


class _Readable:
    """The sources that can be read and are of use; arguments as of :func:`chosen_sources`."""

    def __init__(
        self, offered: Iterable[Source], own: Collection[tuple[str, str]], note: Callable[[str], None]
    ) -> None:
        in_run = {(each.task.key, each.task.context): each for each in offered if each.place is Place.RUN}
        self._own = {pair: source for pair, source in in_run.items() if pair in own}
        self._note = note
        self._left_out = set[Source | Place]()
        self._noted = set[Place]()

    def is_for(self, asked: Asked, source: Source, least: int = 1) -> bool:
        """Say whether a source is of use to a task, and has so many candidates at least."""
        own = self._own.get((source.task.key, source.task.context))
        if own is not None and source.task.target.cores == asked.target.cores and self._is_of_use(own):
            return False
        return self._is_of_use(source) and len(source.candidates) >= least

    def _is_of_use(self, source: Source) -> bool:
        place = source.place
        if source in self._left_out or place in self._left_out:
            return False
        try:
            return source.is_of_use
        except UserError as error:
            if place not in (Place.USER, Place.SHIPPED):
                raise
            self._left_out.add(place if isinstance(error, StoreOutageError) else source)  # a store is waited for once
            if place not in self._noted:
                self._note(f"some candidates to begin from are left out ({place}): {error}")
            self._noted.add(place)
            return False


def _cut(source: Source, rows: int) -> Source:
    kept = fastest_and_others(source.candidates, max(BEST, rows))
    return Source(source.place, replace(source.measured, measured=kept), teaches=rows > 0)
