"""What the verbs of a schedule emit, which handles end with them, and which verbs they refuse, without MLIR."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import rule_ops
from fixed_targets import FIXED
from recording_emitter import RecordingEmitter

from mlir_sched.errors import ScheduleError, UserError
from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.trace import Recorder
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.handles import Handles
from mlir_sched.transform_scripts.module import ScheduleModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction
from mlir_sched.transform_scripts.tracked_ops import TrackedOps

DISPATCH = rule_ops.dispatch(rule_ops.matmul(12), rule_ops.epilogue("f32", ("arith.addf",)))
"""A fill, a product of 8x12 by 12x16 and an element-wise op on its result."""
CLEAN_UP = ["patterns", "cse"]


def started(dispatch: Dispatch = DISPATCH) -> tuple[Schedule, RecordingEmitter, Contraction]:
    emitter = RecordingEmitter()
    s = Schedule(dispatch, FIXED, Recorder(rng=np.random.default_rng(0)), emitter)
    mm = matchers.contraction(dispatch.ops[1], dispatch)
    assert mm is not None
    return s, emitter, mm


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


VERBS: dict[str, Callable[[Schedule, Contraction], object]] = {
    "tile": lambda s, mm: s.tile(mm.op, {mm.reduction: 1}),
    "fusing tile": lambda s, mm: s.tile(mm.root, {mm.tiled[0]: 1}, fuse=True),
    "distribute": lambda s, mm: s.distribute(mm.root, {mm.tiled[0]: 1}, ["#x"]),
    "rfactor": lambda s, mm: s.rfactor(mm.op, {mm.reduction: 4}),
    "inline": lambda s, mm: s.inline(mm.root),
    "promote": lambda s, mm: s.promote(mm.op, mm.op.inputs[0], innermost=mm.tiled[0], tile={}, around=1),
    "pack": lambda s, mm: s.pack(
        mm.op, {mm.reduction: 2}, operand=mm.op.inputs[0], order=(mm.tiled[0], mm.reduction), copy={}
    ),
    "read_padding_in_place": lambda s, mm: s.read_padding_in_place(),
    "peel": lambda s, mm: s.peel(),
    "copies": lambda s, mm: next(s.copies(mm.op)),
    "tensorize": lambda s, mm: s.tensorize(mm.op, "util.func"),
    "annotate": lambda s, mm: s.annotate("name", "unit", on=mm.op),
    "delegate": lambda s, mm: s.delegate(mm.op, "config", "pipeline", []),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("last", ["fold_unit_dims", "read_padding_in_place"])
def test_verbs_that_cannot_follow_are_refused(last: str, verb: str) -> None:
    s, emitter, mm = started()
    (loop,) = s.tile(mm.op, {mm.tiled[0]: 3})
    getattr(s, last)()
    emitter.take()
    rule = rf"after {last}\(\) .*{'vectorized, all together' if last == 'fold_unit_dims' else 'may follow'}"
    with pytest.raises(ScheduleError, match=rule):
        VERBS[verb](s, mm)
    for on_loop in (s.unroll, lambda each: s.fuse(mm.root, into=each), lambda each: s.raw("transform.op", on=each)):
        with pytest.raises(ScheduleError, match=rule):
            on_loop(loop)
    assert emitter.take() == []


def test_folded_ops_are_vectorized_all_together() -> None:
    s, emitter, mm = started()
    s.read_padding_in_place()
    with pytest.raises(ScheduleError, match=r"only fold_unit_dims\(\) may follow"):
        s.vectorize(*mm.ops)
    s.fold_unit_dims()
    with pytest.raises(ScheduleError, match=r"all together; linalg\.generic would be left"):
        s.vectorize(mm.op)
    s.vectorize(*mm.ops)
    assert emitter.take()[-2:] == ["h1 = match linalg.generic", "vectorize h1"]


def test_tails_are_peeled_before_unit_dimensions_are_folded() -> None:
    s, _, mm = started()
    s.tile(mm.op, {mm.tiled[0]: 3})
    s.fold_unit_dims()
    with pytest.raises(ScheduleError, match=r"peel\(\) has to come before"):
        s.vectorize(*mm.ops, tail="peel")


def test_loops_that_are_gone_are_refused() -> None:
    s, _, mm = started()
    loops = s.tile(mm.op, {mm.tiled[0]: 3, mm.tiled[1]: 4})
    s.peel()
    with pytest.raises(ScheduleError, match="the loop rows was peeled or unrolled before"):
        s.unroll(*loops)
    s.unroll(loops[1])
    with pytest.raises(ScheduleError, match="the loop columns was peeled"):
        s.fuse(mm.fill or mm.op, into=loops[1])


class Careless(ScheduleModule):
    name = "careless"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Contraction | None:
        return matchers.contraction(op, dispatch)

    def schedule(self, s: Schedule, mm: Contraction) -> None:
        s.fold_unit_dims()
        s.tile(mm.op, {mm.reduction: 1})  # the careless line


def test_a_refused_verb_is_a_mistake_of_the_module_with_its_line() -> None:
    space = DesignSpace(Space.default(FIXED).insert(Careless()), DISPATCH, FIXED)
    lines = Path(__file__).read_text().splitlines()
    (number,) = (n for n, line in enumerate(lines, 1) if line.endswith("  # the careless line"))
    complaint = rf"'careless' raised ScheduleError: after fold_unit_dims\(\) .*test_schedule_verbs\.py:{number}\)"
    with pytest.raises(UserError, match=complaint):
        space.sample(np.random.default_rng(0), "careless")
