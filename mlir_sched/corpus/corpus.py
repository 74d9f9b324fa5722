"""Measured candidates of many dispatches, from files or from a record store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from mlir_sched.corpus.files import FiledTask
from mlir_sched.corpus.known_task import KnownTask
from mlir_sched.corpus.measured_task import MeasuredTask, Measurement, Origin
from mlir_sched.corpus.nearest import nearest
from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredTask, context_parts
from mlir_sched.errors import UserError
from mlir_sched.payload import Dispatch
from mlir_sched.targets.target import Target


@dataclass(frozen=True)
class Corpus:
    """Tasks of which candidates were measured, of one machine or of several.

    The same dispatch may be there more than once. Candidates are read when they are first asked for, so that what they
    are read from has to be open until then.
    """

    known: tuple[KnownTask, ...]

    @staticmethod
    def of_files(paths: Iterable[Path]) -> Corpus:
        """Return the tasks of files, in their order.

        Raises:
            UserError: A file is missing, or its first line is damaged or of another format.
        """
        return Corpus(tuple(map(FiledTask.of, paths)))

    @staticmethod
    def of_store(store: RecordStore, *, until: int | None = None) -> Corpus:
        """Return what a store has of each task in each context.

        Failures for which the machine may be to blame, estimates, and contexts that cannot be read are left out. Of
        several records of a trace, whose script has changed meanwhile, the last one counts.

        Args:
            until: Number of the last record that counts; by default all count.

        Raises:
            UserError: The store has what no mlir-sched writes.
        """
        try:
            return Corpus(
                tuple(
                    StoredCandidates.of(store, task, context, until)
                    for task in store.tasks()
                    if task.dispatch is not None
                    for context in store.contexts(task.key)
                    if context_parts(context)
                )
            )
        except (ValueError, TypeError) as error:
            raise UserError(f"the record store {store.name} cannot be read: {error}") from error

    @cached_property
    def tasks(self) -> tuple[MeasuredTask, ...]:
        """All tasks with their candidates, without those that have none."""
        return tuple(task for known in self.known if (task := known.as_measured) is not None)

    def nearest(self, dispatch: Dispatch, target: Target, count: int) -> tuple[MeasuredTask, ...]:
        """Return up to ``count`` tasks, the nearest to a dispatch on a target first; the order is :func:`nearest`'s."""
        return nearest(self.known, dispatch, target, count)


@dataclass(frozen=True)
class StoredCandidates(KnownTask):
    """A task in one context of a store.

    Attributes:
        until: Number of the last record that counts; None for all.
    """

    store: RecordStore
    until: int | None

    @staticmethod
    def of(store: RecordStore, task: StoredTask, context: str, until: int | None) -> StoredCandidates:
        """Return a task of a store, which must have a dispatch, in a context."""
        assert task.dispatch is not None
        target = _target_in(context, task.target)
        return StoredCandidates(task.key, task.name, task.dispatch, target, context, store, until)

    @cached_property
    def as_measured(self) -> MeasuredTask | None:
        """See :attr:`KnownTask.as_measured`; None, too, where nothing was measured, or no untuned code."""
        records = self.store.records(self.key, self.context, until=self.until, scripts=False)
        untuned = next((r.outcome.timing for r in records if r.trace is None), None)
        by_trace = {r.trace.key: r for r in records if r.trace is not None and r.outcome.is_lasting}
        if untuned is None or untuned.is_estimated or not by_trace:
            return None
        known = self.key, self.name, self.dispatch, self.target, self.context
        try:
            measured = tuple(Measurement.of(r, untuned.median_s, Origin.MODEL) for r in by_trace.values())
            return MeasuredTask(*known, untuned.median_s, measured)
        except ValueError as error:
            raise UserError(f"the record store {self.store.name} cannot be read: {error}") from error


def _target_in(context: str, target: Target) -> Target:
    """Return a target with the machine and the threads of a context, which may be others than where it was stored."""
    parts = context_parts(context)
    machine = tuple((name, parts.get(name, value)) for name, value in target.machine)
    found = replace(target, cores=int(parts.get("threads", target.cores)), machine=machine)
    if "caches" not in parts:
        return found
    l1_bytes, l2_bytes, l3_bytes = _cache_bytes(parts["caches"])
    return replace(found, l1_bytes=l1_bytes, l2_bytes=l2_bytes, l3_bytes=l3_bytes)


def _cache_bytes(caches: str) -> list[int]:
    """Return the bytes of three caches as a context names them, ``32K/1024K/32768K``."""
    return [int(size.removesuffix("K")) << 10 for size in caches.split("/")]
