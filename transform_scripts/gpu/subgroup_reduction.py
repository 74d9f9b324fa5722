"""Reductions across the threads of a workgroup, which IREE's own pipelines make: the script draws how rows are shared.

All threads of a workgroup walk one row together, in steps. In a step each thread reads adjacent elements; at the end of
the row the sums of the threads are combined by subgroup instructions.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import GpuLimits, Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common import OnThreads
from mlir_sched.transform_scripts.module import DelegatingModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Loop, Reduction, loop_of


@dataclass(frozen=True)
class SharedRows:
    """How the threads of a workgroup share the rows of a result.

    Attributes:
        found: The dispatch.
        vector: Adjacent elements that a thread reads.
        threads: Threads of a workgroup.
        step: Elements of a row that all threads read at once: a multiple of ``vector * threads``.
    """

    found: Reduction
    vector: int
    threads: int
    step: int

    @property
    def configured(self) -> tuple[LinalgOp, ...]:
        """The ops that walk whole rows and get tile sizes: the reductions and the root."""
        return tuple(op for op in self.found.ops if op.reduces or op is self.found.root)

    @property
    def last(self) -> LinalgOp:
        """The last reduction, whose tile sizes distribute the rows over workgroups."""
        return next(op for op in reversed(self.found.ops) if op.reduces)


class SubgroupReduction(OnThreads, DelegatingModule):
    """A module that draws threads, vectors and steps for a pipeline that combines sums across threads.

    Attributes:
        vectors: Numbers of adjacent elements that a thread may read.
        max_repeats: Most vectors that a thread reads in one step.
    """

    name: ClassVar[str] = "subgroup_reduction"
    vectors: ClassVar[tuple[int, ...]]
    max_repeats: ClassVar[int]

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Reduction | None:
        """Match reductions of rows that are contiguous in memory and fill whole subgroups."""
        found = matchers.reduction(op, dispatch)
        return found if found is not None and walked_by_subgroups(found, target) else None

    @abstractmethod
    def configs(self, s: Schedule, rows: SharedRows) -> list[tuple[LinalgOp, str]]:
        """Return the ``lowering_config`` of every op that has one; that of :attr:`SharedRows.last` is among them."""

    @abstractmethod
    def pipeline(self, s: Schedule, rows: SharedRows) -> str:
        """Return the function's ``translation_info``."""

    def schedule(self, s: Schedule, found: Reduction) -> None:
        """Draw how rows are shared, annotate the ops, and choose the pipeline for the function."""
        rows = self._sample_rows(s, found)
        for op, config in self.configs(s, rows):
            if op is rows.last:
                last = config
            else:
                s.annotate("lowering_config", config, on=op)
        *outer, along = (loop_of(rows.last, position) for position in range(len(rows.last.extents)))
        single: dict[Loop, int] = dict.fromkeys(outer, 1)
        levels = [("workgroup", single), ("loop", {along: rows.step}), ("thread", {along: rows.step // rows.threads})]
        s.delegate(rows.last, last, self.pipeline(s, rows), levels)

    def _sample_rows(self, s: Schedule, found: Reduction) -> SharedRows:
        assert s.target.gpu is not None
        length, gpu = found.first.extents[-1], s.target.gpu
        vectors = [size for size in self.vectors if length % (size * gpu.subgroup_size) == 0]
        vector = s.sample_number("vector", vectors)
        threads = s.sample_number("threads", _thread_counts(length // vector, gpu))
        repeats = s.sample_number("repeats", _divisors(length // (threads * vector), self.max_repeats))
        s.notes["threads"] = threads
        return SharedRows(found, int(vector), int(threads), math.prod([vector, threads, repeats]))


def walked_by_subgroups(found: Reduction, target: Target) -> bool:
    """Say whether the rows of a dispatch are contiguous in memory and fill whole subgroups of a target."""
    assert target.gpu is not None
    configured = [op for op in found.ops if _is_configured(op, found)]
    lengths = {op.extents[-1:] for op in configured}  # that of a root without loops is empty
    whole = len(lengths) == 1 and all(length % target.gpu.subgroup_size == 0 for length in lengths.pop())
    return whole and all(_walks_rows(op, found) for op in configured)


def _thread_counts(vectors: int, gpu: GpuLimits) -> list[int]:
    """Return the sizes of workgroups that share a row of so many vectors evenly.

    One subgroup combines the sums of all subgroups: IREE computes wrong sums where there are more than it has threads.
    """
    most = min(gpu.workgroup_threads, gpu.subgroup_size**2)
    return [count for count in _divisors(vectors, most) if count % gpu.subgroup_size == 0]


def _is_configured(op: LinalgOp, found: Reduction) -> bool:
    return op.reduces or op is found.root


def _walks_rows(op: LinalgOp, found: Reduction) -> bool:
    """Say whether the last loop of an op walks whole rows, and its other loops are those of the rows."""
    others = list(range(len(op.extents) - 1))
    if op.reduces:
        return list(op.parallel_dims) == others and not op.reduces_in_strides
    return [loop.position(op) for loop in found.parallel] == others


def _divisors(number: int, most: int) -> list[int]:
    return [n for n in range(1, most + 1) if number % n == 0]
