"""Which inputs are copied, and how their dimensions stand in the copies, without MLIR."""

from __future__ import annotations

from dataclasses import replace

import rule_ops
from recorded_schedules import DISPATCH, started

from mlir_sched.transform_scripts.tracking.nest import SharedTile, Sharing


def test_a_promoted_input_has_the_dimension_of_a_loop_last_and_is_copied_tile_by_tile() -> None:
    s, emitter, mm = started()
    _, columns = mm.tiled
    s.promote(mm.op, mm.op.inputs[1], innermost=mm.reduction, tile={columns: 4, mm.reduction: 2}, around=2)
    assert emitter.take() == ["patterns", "cse", "h1 = hoist operand 1 of op1 out of 2 loops as [1, 0]"]
    s.vectorize(mm.op)
    assert emitter.take() == [
        "vectorize h1",
        "h2 = match linalg.transpose",
        "vectorize h2",
        "h3 = match tensor.pad",
        "vectorize h3 by ['2', '4']",
    ]


def test_equal_inputs_are_told_apart() -> None:
    fill, product, epilogue = DISPATCH.ops
    equal = [rule_ops.operand("f32", (8, 12), (0, 2), 3) for _ in range(2)]
    assert equal[0] == equal[1]
    s, emitter, mm = started(replace(DISPATCH, ops=(fill, replace(product, inputs=tuple(equal)), epilogue)))
    s.promote(mm.op, mm.op.inputs[1], innermost=mm.reduction, tile={}, around=1)
    assert emitter.take()[-1] == "h1 = hoist operand 1 of op1 out of 1 loops as [0, 1]"


def test_a_packed_input_has_dimensions_in_the_order_of_two_loops() -> None:
    s, emitter, mm = started()
    rows, _ = mm.tiled
    s.pack(mm.op, {mm.reduction: 2}, operand=mm.op.inputs[0], order=(mm.reduction, rows), copy={rows: 4})
    packed, transposed, *_, tiled, vectorized = emitter.take()
    assert packed == "h1 = pack op1 by ['0', '0', '2']"
    assert transposed == "h2 = transpose operand 0 of h1 to [1, 0]"
    assert (tiled, vectorized) == ("h4 = tile h3 by ['1', '4']", "vectorize h4")
    s.pack(mm.op, {mm.reduction: 2}, operand=mm.op.inputs[0], order=(rows, mm.reduction), copy={rows: 4})
    assert not [line for line in emitter.lines if "transpose operand" in line]


def test_the_tiles_of_all_inputs_are_shared_step_by_step() -> None:
    s, emitter, mm = started()
    s.distribute(mm.op, {mm.tiled[0]: 2}, ["#x"])
    s.tile(mm.op, {mm.reduction: 4})
    s.share(mm.op)
    assert emitter.take()[-1] == "h2 = share operands [0, 1] of h1"
    assert s.sharing == Sharing((SharedTile((2, 4), 4), SharedTile((4, 16), 4)), steps=3)
