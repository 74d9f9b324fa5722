"""The payload as plain data: operands and facts of ops."""

from __future__ import annotations

from dataclasses import replace

import rule_ops

from mlir_sched.payload import LinalgOp, LinearExpr, Operand, OpKind, TensorSpec, producer_tiles
from mlir_sched.sampling import IntRange
from mlir_sched.trace import Decision
from mlir_sched.transform_scripts.emitter import Sampled


def test_an_operand_names_the_loop_of_each_dimension() -> None:
    transposed = rule_ops.operand("f32", (16, 8, 12), (1, 0, 2), 3)
    assert transposed.loops == (1, 0, 2)
    assert transposed.dims == (0, 1, 2)
    assert transposed.swapped(0, 2) == (2, 1, 0)
    assert transposed.swapped(1, 1) == (0, 1, 2)


def test_dimensions_are_ordered_by_the_loops_that_walk_them() -> None:
    transposed = rule_ops.operand("f32", (16, 8, 12), (1, 0, 2), 3)
    assert transposed.ordered(1, 0) == (0, 1, 2)
    assert transposed.ordered(0, 1) == (1, 0, 2)
    assert transposed.ordered(2, 1) == (2, 1, 0)


def test_what_a_tile_touches_are_plain_numbers() -> None:
    columns = Sampled(4, Decision("columns", IntRange(1, 8), 4))
    window = Operand(TensorSpec((10,), "f32"), (LinearExpr((1, 1)),))
    for operand, touched in ((rule_ops.operand("f32", (16, 8), (1, 0), 2), [4, 2]), (window, [5])):
        assert operand.touched((2, columns)) == touched
        assert {type(length) for length in operand.touched((2, columns))} == {int}


def test_a_reduction_in_strides_walks_other_dimensions_of_its_largest_input() -> None:
    product = rule_ops.matmul(64, m=1, n=16)
    assert product.largest_input is product.inputs[1]
    assert product.reduces_in_strides
    assert not rule_ops.matmul(64, m=16, n=1).reduces_in_strides
    assert not rule_ops.epilogue("f32", ("arith.addf",)).reduces_in_strides
    assert product.footprint_bytes == 4 * (64 + 64 * 16 + 16)


def test_what_a_tile_needs_of_a_producer_is_asked_of_the_result_that_it_reads() -> None:
    rows, every = rule_ops.operand("f32", (16,), (0,), 2), rule_ops.operand("f32", (16, 64), (0, 1), 2)
    kinds = ("parallel", "reduction")
    both = LinalgOp(0, "linalg.generic", OpKind.REDUCTION, kinds, (16, 64), (rows,), (every, rows), ("math.exp",))
    of_sums = replace(rows, producer=0)
    reader = LinalgOp(1, "linalg.generic", OpKind.ELEMENTWISE, kinds[:1], (16,), (of_sums,), (rows,), ("arith.addf",))
    assert producer_tiles(reader, [(4,)], both) == [(4, 64)]
    of_weights = replace(every, producer=0)
    wide = LinalgOp(1, "linalg.generic", OpKind.REDUCTION, kinds, (16, 64), (of_weights,), (rows,), ("arith.addf",))
    assert producer_tiles(wide, [(4, 8)], both) == [(4, 8)]
