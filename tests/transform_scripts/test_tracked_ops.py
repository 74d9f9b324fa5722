"""Which verbs are refused in which state of the code, without MLIR."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fixed_targets import FIXED
from recorded_schedules import DISPATCH, started

from mlir_sched.errors import ScheduleError, UserError
from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.module import ScheduleModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction

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
    complaint = rf"'careless' raised ScheduleError: after fold_unit_dims\(\) .*test_tracked_ops\.py:{number}\)"
    with pytest.raises(UserError, match=complaint):
        space.sample(np.random.default_rng(0), "careless")
