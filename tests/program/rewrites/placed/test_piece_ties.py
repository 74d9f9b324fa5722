"""What scripts require of the values that the ops of pieces read."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_sched.program.rewrites.placed.comparison import _ties
from mlir_sched.program.rewrites.placed.links import Link, Made


@dataclass(frozen=True)
class FakeOp:
    """An op that reads and makes named values."""

    operands: tuple[str, ...]
    results: tuple[str, ...]


FIRST, SECOND = FakeOp(("weights", "state"), ("next",)), FakeOp(("weights", "next"), ("last",))
READ = [[Link(op, place) for place in range(2)] for op in (FIRST, SECOND)]
ON_RESULT = Link(SECOND, 1), Made(FIRST, 0)


def test_what_a_piece_reads_twice_is_one_value() -> None:
    ties = _ties([FIRST, SECOND], [READ[0] + READ[1]])
    assert ties == {FIRST: [], SECOND: [(Link(SECOND, 0), Link(FIRST, 0)), ON_RESULT]}


def test_pieces_that_read_equal_values_may_get_others() -> None:
    assert _ties([FIRST, SECOND], READ) == {FIRST: [], SECOND: [ON_RESULT]}


def test_an_op_of_two_pieces_is_compared_once() -> None:
    assert _ties([FIRST, SECOND], [*READ, *READ]) == {FIRST: [], SECOND: [ON_RESULT]}
