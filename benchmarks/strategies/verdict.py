"""The rule by which an arm becomes the default: paired ratios, their intervals, and what a gate asks of them.

An arm is a way to search. It is compared with another one in pairs, on the same task with the same seed. A ratio is the
time of what the arm found over the time of what the other one found after as many trials: below 1 the arm is better.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean

import numpy as np

RESAMPLES = 10_000
"""Resamples of an interval."""
CONFIDENCE = 0.95
"""Coverage of an interval; with few tasks it covers less: about 0.9 with eight."""
LAST = 24
"""Trials after which no arm may have lost anything."""
LAST_HIGH, LAST_FAMILY = 1.01, 1.05
"""What the interval's upper end has to be below after these trials, and the most that a family's ratio may be."""
LEAST_TASKS = 8
"""Fewest tasks that a default is judged on: an interval over fewer says little."""
LEAST_NETWORKS = 2
"""Fewest networks that a default is tuned on."""


class Verdict(StrEnum):
    """What becomes of an arm."""

    DEFAULT = "default"
    OPTION = "option"


@dataclass(frozen=True)
class Pair:
    """Two arms on one task with one seed.

    Attributes:
        task, family: The task, and the family that it is of.
        ratio: Time with the arm over time with the other one, > 0.
    """

    task: str
    family: str
    seed: int
    ratio: float


@dataclass(frozen=True)
class Compared:
    """An arm against another one after some trials.

    Attributes:
        ratio: Geometric mean over the tasks, each of which counts as one whatever its number of seeds.
        low, high: Its interval over tasks: what other tasks like these would show.
        families: Geometric mean over the tasks of each family.
        tasks: How many tasks there are.
    """

    ratio: float
    low: float
    high: float
    families: Mapping[str, float]
    tasks: int

    @property
    def worst_family(self) -> tuple[str, float]:
        """The family with the largest ratio, and that ratio."""
        return max(self.families.items(), key=lambda each: each[1])


@dataclass(frozen=True)
class Gate:
    """What is asked of a part before it is measured.

    Attributes:
        most: The largest ratio by the number of trials; one below 1 has to be below 1 by its whole interval.
        trials: The largest ratio of the trials until the best is near enough, likewise; None where they do not matter.
    """

    most: Mapping[int, float] = field(default_factory=dict)
    trials: float | None = None


@dataclass(frozen=True)
class Judgement:
    """What becomes of an arm, and why it is not the default."""

    verdict: Verdict
    against: tuple[str, ...] = ()


def compared(pairs: Sequence[Pair]) -> Compared:
    """Return what pairs after as many trials say.

    The seeds of a task are averaged first, and tasks are drawn again: seeds of one task say little of another one.

    Raises:
        ValueError: There are no pairs, or a ratio is not positive and finite.
    """
    if not pairs or not all(0 < pair.ratio < math.inf for pair in pairs):
        raise ValueError(f"pairs with positive, finite ratios are needed, but got {list(pairs)}")
    logs = {task: fmean(math.log(each.ratio) for each in pairs if each.task == task) for task in _distinct(pairs)}
    family = {pair.task: pair.family for pair in pairs}
    families = {
        name: math.exp(fmean(log for task, log in logs.items() if family[task] == name))
        for name in dict.fromkeys(family.values())
    }
    low, high = _interval(list(logs.values()))
    return Compared(math.exp(fmean(logs.values())), math.exp(low), math.exp(high), families, len(logs))


def judged(
    found: Mapping[int, Compared], gate: Gate, networks: Sequence[tuple[float, float]], trials: Compared | None = None
) -> Judgement:
    """Return what becomes of an arm.

    Args:
        found: The comparison by the number of trials; those of the gate, and :data:`LAST`.
        networks: Of each network, the ends of the interval of the time with the arm over the time without it.
        trials: The comparison of the trials until the best is near enough, where the gate asks for it.

    Raises:
        KeyError: A comparison is missing.
    """
    against = [
        *_against_gate(found, gate),
        *(against_trials(trials, gate) if trials else ()),
        *_against_last(found[LAST]),
        *_against_networks(networks),
    ]
    return Judgement(Verdict.OPTION if against else Verdict.DEFAULT, tuple(against))


def against_trials(found: Compared, gate: Gate) -> Iterable[str]:
    """Yield what speaks against an arm by the trials that it needs over those of the other one."""
    if gate.trials is None:
        return
    if found.ratio > gate.trials:
        yield f"{found.ratio:.2f} of the trials until near the best, where the gate asks for {gate.trials:g}"
    if gate.trials < 1 <= found.high:
        yield f"it may save no trials: its interval ends at {found.high:.2f}"


def _against_gate(found: Mapping[int, Compared], gate: Gate) -> Iterable[str]:
    if not gate.most and gate.trials is None:
        yield "nothing was asked of it before"
    for trials, most in gate.most.items():
        if found[trials].ratio > most:
            yield f"{found[trials].ratio:.2f} after {trials} trials, where the gate asks for {most:g}"
        if most < 1 <= found[trials].high:
            yield f"it may be no better after {trials} trials: its interval ends at {found[trials].high:.2f}"


def _against_last(last: Compared) -> Iterable[str]:
    if last.tasks < LEAST_TASKS:
        yield f"{last.tasks} of {LEAST_TASKS} tasks searched"
    if last.high >= LAST_HIGH:
        yield f"it may be worse after {LAST} trials: its interval ends at {last.high:.2f}"
    name, ratio = last.worst_family
    if ratio > LAST_FAMILY:
        yield f"{ratio:.2f} on {name} after {LAST} trials"


def _against_networks(networks: Sequence[tuple[float, float]]) -> Iterable[str]:
    if len(networks) < LEAST_NETWORKS:
        yield f"{len(networks)} of {LEAST_NETWORKS} networks measured"
    for low, high in networks:
        if low > 1:
            yield f"a network is slower: {low:.2f} to {high:.2f}"


def _distinct(pairs: Iterable[Pair]) -> list[str]:
    return list(dict.fromkeys(pair.task for pair in pairs))


def _interval(logs: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the percentile bootstrap of a mean, with the same draws for the same number of values."""
    drawn = np.random.default_rng(0).integers(len(logs), size=(RESAMPLES, len(logs)))
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(np.asarray(logs)[drawn].mean(axis=1), (outside, 1 - outside))
    return float(low), float(high)
