"""Channels as numbers: in which order a value is read, and which runs of adjacent channels that order has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.int64]]
"""Numbers of channels, those of all sources one behind the other, over the dimensions that channels lie along."""


class ChannelRun(NamedTuple):
    """Adjacent channels of one source.

    Attributes:
        source: Which source.
        first: Its first channel of the run.
        size: Number of channels.
    """

    source: int
    first: int
    size: int


def numbered(size: int, first: int = 0) -> Numbers:
    """Return the numbers of the channels of a source in their order, from a first one on."""
    return np.arange(first, first + size, dtype=np.int64)


def sorted_places(numbers: Numbers) -> Numbers:
    """Return the places of channels in the order of their numbers; those of a group stay together.

    Channels that are read again stand behind all that are read once, and so on, so that they are runs, too.

    Args:
        numbers: The channels of all groups, which lie along all dimensions but the last one.
    """
    rows = numbers.reshape(-1, numbers.shape[-1])
    places = [np.lexsort((row, _read_before(row))) + number * rows.shape[1] for number, row in enumerate(rows)]
    return np.concatenate(places)


def _read_before(numbers: Numbers) -> Numbers:
    """Return how often each channel stands in front of its place."""
    order = np.argsort(numbers, kind="stable")
    found = np.empty_like(numbers)
    found[order] = numbered(numbers.size) - np.searchsorted(numbers[order], numbers[order])
    return found


def runs(numbers: Sequence[int], sizes: Sequence[int]) -> list[ChannelRun]:
    """Return the runs that channels consist of.

    Args:
        numbers: Their numbers, in order.
        sizes: The channels of each source.
    """
    starts = [0, *accumulate(sizes)]
    begins = [place for place, (before, own) in enumerate(pairwise(numbers), 1) if own != before + 1 or own in starts]
    found = list[ChannelRun]()
    for begin, end in pairwise([0, *begins, len(numbers)]):
        source = int(np.searchsorted(starts, numbers[begin], side="right")) - 1
        found.append(ChannelRun(source, numbers[begin] - starts[source], end - begin))
    return found
