"""Channels as numbers: runs of adjacent ones, and the places that they are sorted by."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mlir_sched.program.rewrites.channels.order import ChannelRun, numbered, runs, sorted_places

SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=4)


def test_runs_end_where_a_source_ends_and_where_channels_are_left_out() -> None:
    found = [ChannelRun(0, 4, 2), ChannelRun(1, 0, 2), ChannelRun(0, 1, 1), ChannelRun(0, 3, 1)]
    assert runs([4, 5, 6, 7, 1, 3], [6, 4]) == found


def test_the_channels_of_a_group_stay_in_it() -> None:
    numbers = np.array([[5, 1, 3], [4, 0, 2]])
    assert sorted_places(numbers).tolist() == [1, 2, 0, 4, 5, 3]


def test_channels_that_are_read_twice_are_runs_twice() -> None:
    numbers = np.array([0, 1, 2, 1, 2, 2])
    assert numbers[sorted_places(numbers)].tolist() == [0, 1, 2, 1, 2, 2]
    assert sorted_places(numbers[::-1]).tolist() == [5, 2, 0, 4, 1, 3]


@given(SIZES, st.randoms(use_true_random=False))
def test_runs_have_the_channels_in_their_order(sizes: list[int], rng: Random) -> None:
    numbers = numbered(sum(sizes)).tolist()
    rng.shuffle(numbers)
    starts = np.cumsum([0, *sizes])
    found = runs(numbers, sizes)
    assert [starts[run.source] + run.first + place for run in found for place in range(run.size)] == numbers
    assert all(run.first >= 0 and run.first + run.size <= sizes[run.source] for run in found)


@given(SIZES, st.randoms(use_true_random=False))
def test_sorted_channels_are_one_run_of_every_source(sizes: list[int], rng: Random) -> None:
    order = numbered(sum(sizes)).tolist()
    rng.shuffle(order)
    numbers = np.array(order)
    places = sorted_places(numbers)
    assert runs(numbers[places].tolist(), sizes) == [ChannelRun(source, 0, size) for source, size in enumerate(sizes)]
