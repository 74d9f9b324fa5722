"""Halving finds what is at fault among many things, with few tries."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mlir_sched.program.halving import most_tries, without_faults


class Trial:
    """Says that things work unless one of those at fault is among them, and keeps what it was asked."""

    def __init__(self, *faults: int) -> None:
        self.faults = faults
        self.asked: list[tuple[int, ...]] = []

    def __call__(self, things: Sequence[int]) -> bool:
        self.asked.append(tuple(things))
        return not set(things) & set(self.faults)


@pytest.mark.parametrize("number", [1, 2, 3, 7, 16, 100])
def test_one_thing_at_fault_is_found_in_twice_the_logarithm_of_tries(number: int) -> None:
    for fault in range(number):
        trial = Trial(fault)
        found = without_faults(range(number), trial, most_tries(number))
        assert found == tuple(thing for thing in range(number) if thing != fault)
        assert len(trial.asked) <= most_tries(number)
        assert len({*trial.asked}) == len(trial.asked), "nothing is tried twice"


def test_what_is_not_tried_in_time_is_not_returned() -> None:
    trial = Trial(0, 5, 9)
    assert without_faults(range(16), trial, 100) == (1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 13, 14, 15)
    few = Trial(0, 5, 9)
    found = without_faults(range(16), few, 4)
    assert len(few.asked) == 4
    assert set(found) <= {1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 13, 14, 15}
    assert not found or few.asked[-1] == found or found in few.asked, "what is returned was tried as a whole"


def test_what_works_stays_in_front_of_what_is_tried() -> None:
    trial = Trial(3)
    assert without_faults((3, 4), trial, 9, kept=(8, 9)) == (8, 9, 4)
    assert all(things[:2] == (8, 9) for things in trial.asked)
