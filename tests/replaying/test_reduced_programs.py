"""A fault is shown by few of the things that show it together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mlir_sched.program.halving import MOST_PARTS, fewest


class Shown:
    """Says that some things show the fault where all that it needs are among them."""

    def __init__(self, *needed: int) -> None:
        self.needed, self.tried, self.asked = needed, 0, set[tuple[int, ...]]()

    def __call__(self, things: Sequence[int]) -> bool:
        self.tried += 1
        self.asked.add(tuple(things))
        assert len(self.asked) == self.tried, "nothing is tried twice"
        assert things == sorted(things)
        return {*self.needed} <= {*things}


@pytest.mark.parametrize("needed", [(0,), (999,), (500, 501), (10, 11, 14), (499, 500)])
def test_neighbours_that_show_a_fault_are_all_that_is_left_of_a_thousand(needed: tuple[int, ...]) -> None:
    shown = Shown(*needed)
    assert fewest(1000, shown) == list(needed)
    assert shown.tried <= MOST_PARTS


def test_things_that_are_far_apart_are_found_as_far_as_tries_allow() -> None:
    assert fewest(64, Shown(3, 60), tries=500) == [3, 60]
    few = Shown(3, 60)
    assert {3, 60} < {*fewest(64, few, tries=5)}
    assert few.tried == 5
