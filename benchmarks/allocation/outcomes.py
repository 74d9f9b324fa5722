"""Replays of recorded runs under budgets, on machines of other speeds, with candidates in other orders."""

import itertools
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.allocation.recorded import read_run
from benchmarks.allocation.replay import Replayed, replay
from benchmarks.figures.result_table import Figure, figure

MINUTES = (1.0, 2.0, 5.0, 15.0, 30.0)
"""Budgets that are replayed."""
SPEEDS = (0.5, 1.0, 2.5)
"""Seconds that pass for each recorded second: a machine twice as fast, the recorded one, and one 2.5 times as slow."""
LATE_SHARE, LATE_S = 0.03, 10.0
"""A run is late that ends by more than this share of its minutes after them, and by more than so many seconds."""
MIDDLE = (10, 90)
"""Percentiles between which 80 % of the replays lie."""


@dataclass(frozen=True)
class Outcome:
    """The replays of one recorded run under one budget.

    Attributes:
        name: Machine, network and threads.
        minutes: The budget.
        over_best: Times of the emitted programs over the best there is, one per speed and order.
        whole: Seconds of the replays over those of the budget.
        tried: Candidates tried.
    """

    name: str
    minutes: float
    over_best: tuple[float, ...]
    whole: tuple[float, ...]
    tried: tuple[int, ...]

    @property
    def late(self) -> int:
        """How many of the replays end late."""
        least = 1 + max(LATE_SHARE, LATE_S / (60 * self.minutes))
        return sum(each > least for each in self.whole)

    @property
    def figure(self) -> Figure:
        """The median of the times over the best there is, with the middle of them."""
        low, high = np.percentile(self.over_best, MIDDLE)
        return figure(median(self.over_best), float(low), float(high))


def outcomes(
    runs: Mapping[str, Path], minutes: Sequence[float], speeds: Sequence[float], orders: int, workers: int | None = None
) -> list[Outcome]:
    """Return the outcome of every recorded run under every budget.

    Args:
        runs: Files of the runs, by name.
        orders: Orders of the candidates, from 1.
        workers: Processes; by default one per core. With 1, all is done in this process.
    """
    settings = list(itertools.product(runs.items(), minutes))
    work = partial(_outcome, speeds=tuple(speeds), orders=orders)
    if workers == 1:
        return list(map(work, settings))
    with ProcessPoolExecutor(workers or len(os.sched_getaffinity(0)), mp_context=get_context("spawn")) as pool:
        return list(pool.map(work, settings))


def _outcome(setting: tuple[tuple[str, Path], float], speeds: Sequence[float], orders: int) -> Outcome:
    (name, path), minutes = setting
    run = read_run(path)
    replays: list[Replayed] = [
        replay(run, path, minutes=minutes, order=order, speed=speed)
        for speed, order in itertools.product(speeds, range(1, orders + 1))
    ]
    return Outcome(
        name,
        minutes,
        tuple(each.over_best for each in replays),
        tuple(each.seconds / (60 * minutes) for each in replays),
        tuple(each.tried for each in replays),
    )
