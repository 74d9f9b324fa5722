"""Pools, the measured candidates of tasks, as models are judged on them: which others teach a model what it ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus.families import FAMILIES
from mlir_sched.corpus import MeasuredTask, Origin
from mlir_sched.corpus.files import SHIPPED, SUFFIX, files_in, read_task
from mlir_sched.errors import UserError
from mlir_sched.models import CostModel, Feed, Measured, ModelTask, Rows
from mlir_sched.search import Demand, Shown
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space

_FAMILY = {program: family for family, programs in FAMILIES.items() for program in programs}


class Sources(StrEnum):
    """What teaches a model beside the first rows of the pool itself."""

    NOTHING = "nothing else"
    SHAPES = "other shapes"
    FAMILIES = "other families"
    BOTH = "other shapes and families"
    MACHINES = "other machines"


@dataclass(frozen=True)
class Pool:
    """The measured candidates of one task on one machine, of which at least one is valid."""

    task: MeasuredTask

    @cached_property
    def family(self) -> str:
        """The family in the corpus' list of programs; for a program that is not there, that of the dispatch."""
        return _FAMILY.get(self.task.name, self.task.family)

    @cached_property
    def random(self) -> tuple[int, ...]:
        """The rows that were drawn at random, in the order of their measurement."""
        return tuple(row for row, origin in enumerate(self.task.origins) if origin is Origin.RANDOM)

    @cached_property
    def seconds(self) -> NDArray[np.float64]:
        """Seconds per call of all rows; infinite where they failed."""
        return self.task.seconds

    @property
    def best_s(self) -> float:
        """Seconds per call of the fastest candidate."""
        return float(self.seconds.min())

    @property
    def shown(self) -> Shown:
        """What the task has shown."""
        return Shown(Demand.of(self.task.dispatch), self.task.untuned_s, self.best_s)

    @cached_property
    def ended_s(self) -> NDArray[np.float64]:
        """The same as ``seconds``, but a failure counts as the slowest of the others."""
        return np.minimum(self.seconds, float(self.seconds[np.isfinite(self.seconds)].max()))

    def rows(self, model: CostModel, group: int, chosen: Sequence[int]) -> Rows:
        """Return some rows as a model reads them."""
        task, feeds = self.task, model.feeds
        of_task = ModelTask(group, task.dispatch, task.target)
        features = task.features() if Feed.FEATURES in feeds else np.empty((len(self.seconds), 0), np.float32)
        traces = [task.legal[row].trace for row in chosen] if feeds - {Feed.FEATURES} else []
        graphs = self._space.graphs(traces) if Feed.GRAPHS in feeds else []
        return Rows(of_task, features[list(chosen)], tuple(traces if Feed.TRACES in feeds else ()), tuple(graphs))

    def measured(self, model: CostModel, group: int, chosen: Sequence[int]) -> Measured:
        """Return some rows as a model learns from them: relative to the fastest of these."""
        seconds = self.seconds[list(chosen)]
        best = seconds.min()
        throughput = best / seconds if np.isfinite(best) else np.zeros(len(seconds))
        return Measured(self.rows(model, group, chosen), throughput)

    @cached_property
    def _space(self) -> DesignSpace:
        return DesignSpace(Space.default(self.task.target), self.task.dispatch, self.task.target)


def pools_in(folders: Sequence[Path]) -> tuple[Pool, ...]:
    """Return the pools of files in folders, by default those that are collected as pools.

    Tasks without a valid candidate are left out.

    Raises:
        UserError: A file is damaged, or there is no pool.
    """
    found = [files_in(folder) for folder in folders] or [sorted(SHIPPED.glob(f"*/pools/*{SUFFIX}"))]
    pools = [Pool(read_task(path)) for paths in found for path in paths]
    if not (valid := tuple(pool for pool in pools if np.isfinite(pool.seconds).any())):
        raise UserError("there are no measured candidates: python -m benchmarks corpus collect pools")
    return valid


def sources_of(pool: Pool, kind: Sources, pools: Sequence[Pool]) -> tuple[Pool, ...]:
    """Return the pools that teach a model, those of the same family first; the same dispatch never does."""
    others = [each for each in pools if each.task.dispatch != pool.task.dispatch]
    alike = [each for each in others if each.family == pool.family]
    unlike = [each for each in others if each.family != pool.family]

    def on(found: Sequence[Pool], *, same: bool) -> tuple[Pool, ...]:
        return tuple(each for each in found if (each.task.target.machine == pool.task.target.machine) is same)

    match kind:
        case Sources.NOTHING:
            return ()
        case Sources.SHAPES:
            return on(alike, same=True)
        case Sources.FAMILIES:
            return on(unlike, same=True)
        case Sources.BOTH:
            return on([*alike, *unlike], same=True)
        case Sources.MACHINES:
            return on([*alike, *unlike], same=False)


def taught(pool: Pool, sources: Sequence[Pool], model: CostModel, most: int) -> list[Measured]:
    """Return up to ``most`` rows of sources as a model learns from them, those of the pool's family before all others.

    Where there are more, each source gives as many, spread over the order of measurement.
    """
    found, left = list[Measured](), most
    for near in (True, False):
        alike = [each for each in sources if (each.family == pool.family) is near]
        for each in alike:
            rows = _spread(len(each.seconds), left // len(alike))
            if rows:
                found.append(each.measured(model, len(found), rows))
        left = most - sum(len(each.rows) for each in found)
    return found


def _spread(rows: int, count: int) -> list[int]:
    """Return up to ``count`` of so many rows, evenly spread."""
    return np.linspace(0, rows - 1, min(rows, count)).round().astype(int).tolist() if count else []
