"""Which loops are peeled, and the copies of a tile that peeling makes, without MLIR."""

from __future__ import annotations

import pytest
from recorded_schedules import started
from recording_emitter import RecordingEmitter

from mlir_sched.errors import ScheduleError
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction


def test_peeling_peels_uneven_loops_once_inner_ones_first() -> None:
    s, emitter, mm = started()
    m, n = mm.tiled
    s.tile(mm.op, {m: 3, n: 5}, order=(m, n))
    s.tile(mm.op, {mm.reduction: 4})
    s.peel()
    s.peel()
    assert emitter.take()[3:] == ["peel loop1 of h2", "peel loop0 of h1"]
    s.vectorize(mm.op, tail="peel")
    assert emitter.take()[-2:] == ["h4 = match mlir_sched.op_1_0", "vectorize h4"]


def test_peeling_leaves_even_loops_and_handles_alone() -> None:
    s, emitter, mm = started()
    s.tile(mm.op, {mm.tiled[0]: 4})
    s.tile(mm.op, {mm.tiled[1]: 32})
    s.peel()
    s.vectorize(mm.op)
    assert emitter.take()[-1] == "vectorize h2"


def copies(s: Schedule, mm: Contraction) -> list[tuple[int, tuple[int, ...]]]:
    return [(op.index, s.tile_of(op)) for op in s.copies(mm.op, mm.root)]


@pytest.mark.parametrize("peeled_before", [False, True])
def test_copies_are_yielded_tails_first(peeled_before: bool) -> None:
    s, _, mm = started()
    m, n = mm.tiled
    s.tile(mm.root, {m: 3, n: 5}, order=(m, n), fuse=True)
    if peeled_before:
        s.peel()
    tails, rows, columns, full = (2, 1), (2, 5), (3, 1), (3, 5)
    found = copies(s, mm)
    assert [tile for index, tile in found if index == 2] == [tails, rows, columns, full]
    assert [tile for index, tile in found if index == 1] == [(*tile, 12) for tile in (tails, rows, columns, full)]


def test_without_tails_there_is_one_copy() -> None:
    s, emitter, mm = started()
    s.tile(mm.root, {mm.tiled[0]: 4}, fuse=True)
    assert copies(s, mm) == [(2, (4, 16)), (1, (4, 16, 12))]
    assert not [line for line in emitter.take() if line.startswith("peel")]


def test_only_the_yielded_copy_can_be_scheduled() -> None:
    s, _, mm = started()
    s.tile(mm.root, {mm.tiled[0]: 3}, fuse=True)
    for op in s.copies(mm.op, mm.root):
        other = mm.root if op is mm.op else mm.op
        with pytest.raises(
            ScheduleError, match=rf"op {other.index} of the dispatch, stands in the copies of copies\(\)"
        ):
            s.tile(other, {mm.tiled[0]: 1})
        s.tile(op, {mm.tiled[0]: 1})
    with pytest.raises(ScheduleError, match="inside the loop over copies"):
        s.vectorize(mm.op)


def test_loops_that_are_gone_are_refused() -> None:
    s, _, mm = started()
    loops = s.tile(mm.op, {mm.tiled[0]: 3, mm.tiled[1]: 4})
    s.peel()
    with pytest.raises(ScheduleError, match="the loop rows was peeled, unrolled or given up before"):
        s.unroll(*loops)
    s.unroll(loops[1])
    with pytest.raises(ScheduleError, match="the loop columns was peeled"):
        s.fuse(mm.fill or mm.op, into=loops[1])


def test_loops_that_were_given_up_are_refused_and_ops_are_not() -> None:
    s, emitter, mm = started()
    (loop,) = s.tile(mm.op, {mm.tiled[0]: 4})
    s.forget_loops()
    assert emitter.take()[-1] == "forget loops"
    with pytest.raises(ScheduleError, match="the loop rows was peeled, unrolled or given up before"):
        s.unroll(loop)
    s.vectorize(mm.op)
    assert emitter.take()[-1] == "vectorize h1"


def emitted(emitter: RecordingEmitter) -> list[str]:
    """Return what was emitted since the last call, without clean-ups."""
    return [line for line in emitter.take() if line not in ("patterns", "cse")]


def test_a_rest_is_cut_into_pieces_of_which_the_last_is_shorter() -> None:
    """Of 16 columns tiles of 11 leave 5, in both copies that peeled rows make: 2, 2 and 1; full tiles stay."""
    s, emitter, mm = started()
    m, n = mm.tiled
    s.tile(mm.op, {m: 3, n: 11}, order=(m, n))
    s.cut_rest(mm.op, n, 2)
    assert emitted(emitter)[2:] == [
        "annotate h2 with mlir_sched.op_1_0",
        "peel loop1 of h2",
        "peel loop0 of h1",
        "h3 = match mlir_sched.op_1_0",
        "split h3 in 4",
        "h4 = tile h3#1 by ['0', '2', '0']",
        "unroll loop1 of h4 by 3",
        "h5 = tile h3#3 by ['0', '2', '0']",
        "unroll loop1 of h5 by 3",
    ]
    s.tile(mm.op, {mm.reduction: 4})
    assert s.tile_of(mm.op) == (3, 11, 4)
    assert emitted(emitter)[-2:] == ["h6 = match mlir_sched.op_1_1", "h7 = tile h6 by ['0', '0', '4']"]


def test_a_rest_is_cut_with_all_that_its_op_reads() -> None:
    s, emitter, mm = started()
    s.tile(mm.root, {mm.columns: 11}, fuse=True)
    s.cut_rest(mm.root, mm.columns, 4, fuse=True)
    assert emitted(emitter)[-3:] == [
        "split h3 in 2",
        "h4 = fuse h3#1 by ['0', '4']",
        "unroll loop1 of h4 by 2",
    ]
    s.vectorize(*mm.ops)
    assert [line for line in emitted(emitter) if line.startswith("h")] == [
        "h5 = match mlir_sched.op_1_1",
        "h6 = match mlir_sched.op_2_2",
        "h7 = match linalg.fill",
    ]


def test_a_panel_is_copied_for_full_tiles_beside_pieces() -> None:
    """Of 16 columns tiles of 11 leave 5, in pieces of 2: four copies of the product, two of them in three pieces."""
    s, emitter, mm = started()
    rows, columns = mm.tiled
    s.tile(mm.op, {rows: 3, columns: 11}, order=(columns, rows))
    s.cut_rest(mm.op, columns, 2)
    s.promote(mm.op, mm.op.inputs[1], innermost=columns, tile={columns: 11, mm.reduction: 2}, around=2)
    *_, split, hoisted = emitted(emitter)
    assert split.endswith("in 8")
    assert "#0 out of 2 loops" in hoisted


def test_no_rest_is_no_rest_to_cut() -> None:
    s, _, mm = started()
    m, n = mm.tiled
    s.tile(mm.op, {m: 3, n: 4})
    with pytest.raises(ScheduleError, match="no iterations of the loop columns are left over"):
        s.cut_rest(mm.op, n, 2)


@pytest.mark.parametrize("size", [0, 5, 6])
def test_pieces_are_smaller_than_what_is_left_over(size: int) -> None:
    s, _, mm = started()
    _, columns = mm.tiled
    s.tile(mm.op, {columns: 11})
    with pytest.raises(ScheduleError, match=f"5 iterations of the loop columns are left over, of which {size} are no"):
        s.cut_rest(mm.op, columns, size)


@pytest.mark.parametrize("following", ["cut", "copies"])
def test_copies_that_are_cut_into_pieces_are_not_counted_again(following: str) -> None:
    s, _, mm = started()
    _, columns = mm.tiled
    s.tile(mm.op, {columns: 11})
    s.cut_rest(mm.op, columns, 2)
    with pytest.raises(ScheduleError, match="cut into pieces already"):
        s.cut_rest(mm.op, columns, 2) if following == "cut" else next(s.copies(mm.op))
