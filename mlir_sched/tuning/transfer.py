"""Transfer: what measurements of other dispatches give a search before its own first candidate."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from mlir_sched.corpus import Corpus
from mlir_sched.corpus.choosing import chosen_sources
from mlir_sched.corpus.places import opened_corpora
from mlir_sched.corpus.sources import Asked, Place, Source, dump_sources, load_sources, sources_of
from mlir_sched.database import RecordStore
from mlir_sched.errors import IllegalTraceError
from mlir_sched.models import SharedCostModel
from mlir_sched.search import Shown
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.features import EVENNESS, WORKGROUPS
from mlir_sched.trace import Trace
from mlir_sched.tuning.options import NO_TRANSFER, TuneOptions

DISTRIBUTION = "workgroup_"
"""How the names of the decisions begin that spread a dispatch over workgroups."""
DRAWS = 24
"""Ways to spread a dispatch that are drawn: half a millisecond each."""
MOST_PER_THREAD = 4
"""Most workgroups that a thread should get: each takes time to start."""


@dataclass(frozen=True)
class Transfer:
    """What the searches of a run begin from; without sources they begin from nothing. :meth:`of` makes it.

    Attributes:
        sources: The measured tasks, with as many candidates as are used.
        rows: Whether the cost model learns from their candidates.
        starts: Whether a task tries the best candidates of its nearest sources first.
        digest: Tells what searches begin from apart; empty where nothing is looked for.
    """

    sources: tuple[Source, ...] = ()
    rows: bool = True
    starts: bool = True
    digest: str = ""

    @staticmethod
    def of(
        asked: Iterable[Asked],
        corpora: Mapping[Place, Corpus],
        *,
        own: Collection[tuple[str, str]] = (),
        rows: bool = True,
        starts: bool = True,
        note: Callable[[str], None] = lambda _: None,
    ) -> Transfer:
        """Return what tasks begin from; arguments as of the attributes and of :func:`chosen_sources`."""
        return Transfer.loaded(dump_sources(chosen_sources(asked, corpora, own, note)), rows=rows, starts=starts)

    @staticmethod
    def loaded(text: str, *, rows: bool = True, starts: bool = True) -> Transfer:
        """Return what tasks begin from, with the sources of a text (:func:`dump_sources`)."""
        digest = hashlib.sha256(f"{rows} {starts} {text}".encode()).hexdigest()[:16]
        return Transfer(load_sources(text), rows, starts, digest)

    @property
    def key(self) -> list[str]:
        """What tells searches apart: a part of the keys of runs and rounds; empty where nothing is looked for."""
        return [self.digest] if self.digest else []

    def teach(self, model: SharedCostModel) -> None:
        """Have a cost model learn from the candidates that are legal today, as they are."""
        for source in self.sources if self.rows else ():
            if source.teaches:
                task = source.measured
                model.add_source(task.space, task.traces, task.seconds)

    def sources_of(self, asked: Asked) -> tuple[Source, ...]:
        """Return the sources of a task, the nearest first."""
        return sources_of(asked, self.sources) if self.sources else ()

    def shown_to(self, asked: Asked) -> list[Shown]:
        """Return what the sources of a task have shown on its machine, with as many threads."""
        here = asked.target.machine, asked.target.cores
        tasks = [each.measured for each in self.sources_of(asked)]
        shown = [each.shown for each in tasks if (each.target.machine, each.target.cores) == here]
        return [each for each in shown if each is not None]

    def starts_of(self, asked: Asked, *, equal: bool = False) -> Iterator[Trace]:
        """Yield the best candidates of the nearest sources of a task, the nearest source's first.

        Those of another number of threads are spread anew.

        Args:
            equal: Whether those of the same dispatch alone.
        """
        for source in self.sources_of(asked) if self.starts else ():
            if equal and source.task.dispatch != asked.dispatch:
                continue
            same = source.task.target.cores == asked.target.cores
            for trace in source.best:
                yield trace if same else spread_anew(asked.space, trace)


@dataclass(frozen=True)
class TransferPlan:
    """How a run finds what it begins from.

    Attributes:
        name: Tells plans apart.
        corpora: Opens what sources come from.
        rows, starts: As of :class:`Transfer`.
        note: Is told what cannot be read and costs no more.
    """

    name: str
    corpora: Callable[[], AbstractContextManager[Mapping[Place, Corpus]]]
    rows: bool = True
    starts: bool = True
    note: Callable[[str], None] = lambda _: None

    @staticmethod
    def of(
        options: TuneOptions,
        store: RecordStore,
        user_file: Path | None,
        generation: int,
        note: Callable[[str], None],
        *,
        fresh: bool,
    ) -> TransferPlan | None:
        """Return how a run with a store finds what it begins from; None where it is to begin from nothing.

        Args:
            user_file: The user's store; None for none.
            generation: How often the user asked for a fresh start in the store.
            fresh: Whether the run is a fresh start, so that no store counts.
        """
        if options.begins_from == NO_TRANSFER:
            return None
        given = options.transfer_store
        opened = partial(
            opened_corpora,
            store,
            generation=generation,
            fresh=fresh,
            given=given,
            user_file=user_file,
            note=note,
        )
        return TransferPlan(f"transfer {given}", opened, note=note)

    @property
    def key(self) -> list[object]:
        """What tells plans apart, as JSON data."""
        return [self.name, self.rows, self.starts]

    def decided(self, store: RecordStore, key: str, searched: Mapping[tuple[str, str], Asked]) -> Transfer:
        """Return what a run begins from: with the sources that a process chose first under a key, else chosen now.

        The store keeps the sources themselves. So what becomes of where they came from does not change the run.

        Args:
            searched: The tasks of the run by the key and the context of their records.
        """

        def chosen() -> str:
            with self.corpora() as corpora:
                return dump_sources(chosen_sources(searched.values(), corpora, searched.keys(), self.note))

        return Transfer.loaded(store.decide(key, chosen), rows=self.rows, starts=self.starts)


def spread_anew(space: DesignSpace, trace: Trace) -> Trace:
    """Return a trace with its decisions within a workgroup, and others on how the dispatch is spread over workgroups.

    Of some draws that one is returned which gives all threads of the space's target equally many workgroups, at most
    :data:`MOST_PER_THREAD`, and changes fewest of the other decisions; where none does, the most even one. A trace
    without such decisions, or that cannot be repaired, is returned as it is. The result is deterministic.
    """
    within = tuple(each for each in trace.decisions if not each.name.startswith(DISTRIBUTION))
    kept, rng = Trace(trace.sketch, within), np.random.default_rng(int(trace.key, 16))
    if len(within) == len(trace.decisions):
        return trace

    def cost(drawn: Trace) -> tuple[bool, int, float, float]:
        row, cores = space.features([drawn])[0], space.target.cores
        per_thread, idle = (2 ** float(row[WORKGROUPS]) - 1) / cores, 1 - float(row[EVENNESS])
        changed = sum(drawn.values.get(name) != value for name, value in kept.values.items())
        return idle > 0 or round(per_thread) > MOST_PER_THREAD, changed, idle, per_thread

    drawn = list[Trace]()
    for _ in range(DRAWS):
        with suppress(IllegalTraceError):
            drawn.append(space.repaired(kept, rng))
    return min(drawn, key=cost, default=trace)
