"""Which handles end with a verb, and how ops are found again, without MLIR."""

from __future__ import annotations

import pytest
from recorded_schedules import DISPATCH, started
from recording_emitter import RecordingEmitter

from mlir_sched.errors import ScheduleError
from mlir_sched.transform_scripts.tracking.handles import Handles
from mlir_sched.transform_scripts.tracking.tracked_ops import TrackedOps

CLEAN_UP = ["patterns", "cse"]


def test_an_unrolled_op_is_found_again_by_a_mark_from_before() -> None:
    s, emitter, mm = started()
    s.unroll(*s.tile(mm.op, {mm.tiled[0]: 2}))
    assert emitter.take() == ["h1 = tile op1 by ['2', '0', '0']", "unroll loop0 of h1 by 4"]

    s, emitter, mm = started()
    s.unroll(*s.tile(mm.op, {mm.tiled[0]: 2}))
    s.vectorize(mm.op)
    assert emitter.take() == [
        "h1 = tile op1 by ['2', '0', '0']",
        "annotate h1 with mlir_sched.op_1_0",
        "unroll loop0 of h1 by 4",
        "h2 = match mlir_sched.op_1_0",
        "vectorize h2",
    ]


def test_unrolling_after_fusion_finds_the_fused_ops_first() -> None:
    s, emitter, mm = started()
    (loop,) = s.tile(mm.root, {mm.tiled[0]: 2}, fuse=True)
    s.unroll(loop)
    *_, last, unroll = emitter.take()
    assert (last, unroll) == ("split h2 in 2", "unroll loop0 of h1 by 4")


def test_several_copies_take_numbers_and_no_parameters() -> None:
    s, emitter, mm = started()
    step = s.sample_tile("step", mm.reduction)
    s.tile(mm.op, {mm.tiled[0]: 2})
    s.tile(mm.op, {mm.reduction: step})
    assert emitter.take()[-1] == "h2 = tile h1 by ['0', '0', 'step']"
    s, emitter, mm = started()
    step = s.sample_tile("step", mm.reduction)
    s.unroll(*s.tile(mm.op, {mm.tiled[0]: 2}))
    s.tile(mm.op, {mm.reduction: step})
    assert emitter.take()[-1] == f"h3 = tile h2 by ['0', '0', '{int(step)}']"
    assert s.tile_of(mm.op) == (2, 16, step)


def test_a_peeled_op_is_found_again_as_all_its_copies() -> None:
    s, emitter, mm = started()
    s.tile(mm.op, {mm.tiled[0]: 3})
    s.peel()
    s.tile(mm.op, {mm.reduction: 1})
    assert emitter.take() == [
        "h1 = tile op1 by ['3', '0', '0']",
        "annotate h1 with mlir_sched.op_1_0",
        "peel loop0 of h1",
        *CLEAN_UP,
        "h2 = match mlir_sched.op_1_0",
        "h3 = tile h2 by ['0', '0', '1']",
    ]
    assert s.tile_of(mm.op) == (3, 16, 1)


def test_an_unrolled_copy_is_found_again_without_the_other_copies() -> None:
    s, emitter, mm = started()
    m, _ = mm.tiled
    s.tile(mm.op, {m: 3})
    emitter.take()
    for op in s.copies(mm.op):
        s.unroll(*s.tile(op, {m: 1}))
        s.vectorize(op)
    handles = [line.removeprefix("annotate ").split()[0] for line in emitter.lines if line.startswith("annotate")]
    tiled = [line.split()[0] for line in emitter.lines if " tile " in line]
    assert handles == tiled
    assert sum(line.startswith("vectorize") for line in emitter.lines) == 2
    assert [nest.tile for nest in s.nests] == [(1, 16, 12)]
    assert s.nests[0].levels[-2].tile == (1, 16, 12)


def test_an_op_emitted_raw_ends_handles_if_it_says_so() -> None:
    s, emitter, mm = started()
    (loop,) = s.tile(mm.op, {mm.tiled[0]: 2})
    s.raw("transform.some.op", on=loop)
    s.tile(mm.op, {mm.reduction: 4})
    assert emitter.take()[1:] == ["transform.some.op on loop0 of h1", "h2 = tile h1 by ['0', '0', '4']"]
    s.raw("transform.some.op", on=loop, ends_handles=True)
    s.tile(mm.op, {mm.reduction: 2})
    assert "annotate h2 with mlir_sched.op_1_0" in emitter.lines
    assert emitter.take()[-1] == "h4 = tile h3 by ['0', '0', '2']"
    s.raw("transform.some.op", replaces_function=True)
    s.tile(mm.op, {mm.reduction: 1})
    assert emitter.take()[-2:] == ["h5 = match mlir_sched.op_1_1", "h6 = tile h5 by ['0', '0', '1']"]


def test_a_pass_ends_handles_and_names_find_them_again() -> None:
    s, emitter, mm = started()
    s.run_pass("some-pass")
    s.tile(mm.op, {mm.reduction: 1})
    assert emitter.take() == [
        "pass some-pass",
        "h1 = match linalg.generic, linalg.matmul",
        "split h1 in 2",
        "h2 = tile h1#0 by ['0', '0', '1']",
    ]


def test_partial_results_are_found_again_after_a_pass() -> None:
    s, emitter, mm = started()
    s.rfactor(mm.op, {mm.reduction: 4})
    s.run_pass("some-pass")
    s.vectorize(mm.op)
    assert emitter.take() == [
        "h1 = rfactor op1 by ['0', '0', '4']",
        "annotate combine of h1 with mlir_sched.op_1_1",
        "annotate partial of h1 with mlir_sched.op_1_0",
        "pass some-pass",
        "h2 = match mlir_sched.op_1_0",
        "h3 = match mlir_sched.op_1_1",
        "vectorize h2",
        "vectorize h3",
    ]


def test_fusing_another_op_finds_it_again() -> None:
    s, emitter, mm = started()
    s.tile(mm.root, {mm.tiled[0]: 4}, fuse=True)
    s.tile(mm.root, {mm.tiled[1]: 4}, fuse=True)
    assert emitter.take() == ["h1 = fuse op2 by ['4', '0']", "h2 = fuse h1 by ['0', '4']"]
    s.tile(mm.op, {mm.reduction: 4}, fuse=True)
    assert emitter.take()[-1] == "h4 = fuse h3#0 by ['0', '0', '4']"


def test_finished_ops_are_not_looked_for() -> None:
    s, emitter, mm = started()
    s.vectorize(mm.root)
    s.run_pass("some-pass")
    s.tile(mm.op, {mm.reduction: 1})
    assert emitter.take()[2:4] == ["h1 = match linalg.matmul", "h2 = tile h1 by ['0', '0', '1']"]
    with pytest.raises(ScheduleError, match=r"linalg\.generic, op 2 of the dispatch, has its final code"):
        s.tile(mm.root, {mm.tiled[0]: 1})


def test_all_fills_share_one_handle_once_theirs_have_ended() -> None:
    emitter = RecordingEmitter()
    handles = Handles(DISPATCH, TrackedOps(DISPATCH, emitter), emitter)
    fill, product, _ = DISPATCH.ops
    handles.end()
    assert handles.found(fill) == "h2"
    assert handles.found(product) == "h1#0"
    assert emitter.take() == ["h1 = match linalg.generic, linalg.matmul", "split h1 in 2", "h2 = match linalg.fill"]
