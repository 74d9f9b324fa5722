"""Measured candidates of many dispatches, from files or from a record store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mlir_sched.corpus.files import read_task
from mlir_sched.corpus.measured_task import MeasuredTask, Measurement, Origin
from mlir_sched.corpus.nearest import nearest
from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredTask, context_parts
from mlir_sched.errors import UserError
from mlir_sched.payload import Dispatch
from mlir_sched.targets.target import Target


@dataclass(frozen=True)
class Corpus:
    """Measured tasks, of one machine or of several; the same dispatch may be there more than once."""

    tasks: tuple[MeasuredTask, ...]

    @staticmethod
    def of_files(paths: Iterable[Path]) -> Corpus:
        """Return the tasks of files, in their order.

        Raises:
            UserError: A file is missing, damaged or of another format.
        """
        return Corpus(tuple(map(read_task, paths)))

    @staticmethod
    def of_store(store: RecordStore, *, until: int | None = None) -> Corpus:
        """Return what a store has of each task in each context, as far as anything was measured there.

        Failures for which the machine may be to blame, and estimates, are left out. Of several records of a trace,
        whose script has changed meanwhile, the last one counts.

        Args:
            until: Number of the last record that counts; by default all count.

        Raises:
            UserError: The store has what no mlir-sched writes.
        """
        tasks = (found for task in store.tasks() for found in _of_task(store, task, until))
        try:
            return Corpus(tuple(tasks))
        except ValueError as error:
            raise UserError(f"the record store {store.name} cannot be read: {error}") from error

    def nearest(self, dispatch: Dispatch, target: Target, count: int) -> tuple[MeasuredTask, ...]:
        """Return up to ``count`` tasks, the nearest to a dispatch on a target first; the order is :func:`nearest`'s."""
        return nearest(self.tasks, dispatch, target, count)


def _of_task(store: RecordStore, task: StoredTask, until: int | None) -> Iterator[MeasuredTask]:
    if task.dispatch is None:
        return
    for context in store.contexts(task.key):
        records = store.records(task.key, context, until=until, scripts=False)
        untuned = next((r.outcome.timing for r in records if r.trace is None), None)
        by_trace = {r.trace.key: r for r in records if r.trace is not None and r.outcome.is_lasting}
        if untuned is None or untuned.is_estimated or not by_trace:
            continue
        measured = tuple(Measurement.of(r, untuned.median_s, Origin.MODEL) for r in by_trace.values())
        target = _target_in(context, task.target)
        yield MeasuredTask(task.key, task.name, task.dispatch, target, context, untuned.median_s, measured)


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
