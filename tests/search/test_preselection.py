"""The choice of the first candidates by estimated times."""

from __future__ import annotations

from mlir_sched.sampling import Categorical
from mlir_sched.search.strategy import preselect
from mlir_sched.trace import Decision, Trace

SKETCHES = ("slow", "slow", "fast", "fast", "fast", "unknown")
SECONDS = (9.0, 8.0, 3.0, 1.0, 2.0, None)
TRACES = [Trace(name, (Decision("x", Categorical((0, 1, 2, 3, 4, 5)), place),)) for place, name in enumerate(SKETCHES)]


def chosen(count: int) -> list[object]:
    """Return the places of the traces that are chosen, in their order."""
    return [trace.values["x"] for trace in preselect(TRACES, SECONDS, count)]


def test_every_sketch_has_its_turn_before_the_fastest_of_all() -> None:
    assert chosen(5) == [3, 1, 5, 4, 2]


def test_the_fastest_sketches_come_first() -> None:
    assert chosen(2) == [3, 1]


def test_all_traces_are_taken_when_there_are_no_more() -> None:
    assert sorted(map(str, chosen(9))) == list("012345")


def test_without_estimates_sketches_have_their_turns_in_the_order_of_the_draws() -> None:
    kept = [trace.values["x"] for trace in preselect(TRACES, [None] * 6, 4)]
    assert kept == [0, 2, 5, 1]
