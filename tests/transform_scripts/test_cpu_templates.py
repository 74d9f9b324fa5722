"""What the modules for CPUs guess of convolutions and reductions: legal on every machine, and as the rules say."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pytest
from fixed_targets import FIXED
from rule_ops import dispatch, operand

from mlir_sched.payload import Dispatch, LinalgOp, LinearExpr, Operand, OpKind, TensorSpec
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.extents import accumulators_of

MACHINES = {
    "avx512": FIXED,
    "avx2 on two cores": replace(FIXED, cores=2, vector_bytes=32, vector_registers=16),
    "neon": replace(FIXED, vector_bytes=16, l1_bytes=1 << 16),
    "many cores": replace(FIXED, cores=64, l1_bytes=0, l2_bytes=0, l3_bytes=0),
}
PARALLEL, REDUCTION = "parallel", "reduction"
EXACT = {"convolution": "workgroup_|tail|vector|rows_|order", "others": "workgroup_|tail"}
"""Names of what has to be taken as it is guessed; other numbers may become the nearest that fit."""


def filled(op: LinalgOp) -> Dispatch:
    """Return an op behind a fill with a number."""
    made = dispatch(op)
    fill = replace(made.ops[0], inputs=(Operand(TensorSpec((), "f32"), ()),))
    return replace(made, ops=(fill, op))


def windows(size: int, channels: int, filters: int, taps: int = 3, stride: int = 1) -> Dispatch:
    """Return a convolution of an image with channels last; depthwise where there are 0 filters."""
    kinds = (PARALLEL,) * 3 + (REDUCTION,) * (3 if filters else 2)
    extents = (size, size, filters or channels, taps, taps, *([channels] if filters else []))
    loops = len(extents)

    def expr(**coefficients: int) -> LinearExpr:
        return LinearExpr(tuple(coefficients.get(f"d{loop}", 0) for loop in range(loops)))

    height = size * stride + taps - 1
    pixel = expr(d5=1) if filters else expr(d2=1)
    image = Operand(
        TensorSpec((height, height, channels), "f32"), (expr(d0=stride, d3=1), expr(d1=stride, d4=1), pixel)
    )
    weights = (3, 4, 5, 2) if filters else (3, 4, 2)
    kernel = operand("f32", tuple(extents[loop] for loop in weights), weights, loops)
    result = operand("f32", extents[:3], (0, 1, 2), loops, producer=0)
    body = ("arith.mulf", "arith.addf")
    return filled(LinalgOp(1, "linalg.generic", OpKind.CONVOLUTION, kinds, extents, (image, kernel), (result,), body))


def pooling(size: int, channels: int, taps: int = 3, stride: int = 2) -> Dispatch:
    """Return the largest pixels of the windows of an image with channels last."""
    op = windows(size, channels, 0, taps, stride).root
    return filled(replace(op, inputs=(op.inputs[0], operand("f32", (taps, taps), (3, 4), 5)), body=("arith.maximumf",)))


def channels_first(size: int, channels: int, filters: int, taps: int = 3, stride: int = 2) -> Dispatch:
    """Return a convolution of an image with channels first; with a stride, vectors lie along the filters."""
    extents, kinds = (filters, size, size, taps, taps, channels), (PARALLEL,) * 3 + (REDUCTION,) * 3

    def expr(**coefficients: int) -> LinearExpr:
        return LinearExpr(tuple(coefficients.get(f"d{loop}", 0) for loop in range(6)))

    height = size * stride + taps - 1
    image = Operand(
        TensorSpec((channels, height, height), "f32"), (expr(d5=1), expr(d1=stride, d3=1), expr(d2=stride, d4=1))
    )
    kernel = operand("f32", (filters, channels, taps, taps), (0, 5, 3, 4), 6)
    result = operand("f32", (filters, size, size), (0, 1, 2), 6, producer=0)
    body = ("arith.mulf", "arith.addf")
    return filled(LinalgOp(1, "linalg.generic", OpKind.CONVOLUTION, kinds, extents, (image, kernel), (result,), body))


def row_sums(rows: int, columns: int, *, along: int = 1, read_type: str = "f32") -> Dispatch:
    """Return the sums of the rows of a matrix, or of its columns."""
    kinds = (REDUCTION, PARALLEL) if along == 0 else (PARALLEL, REDUCTION)
    read, sums = (
        operand(read_type, (rows, columns), (0, 1), 2),
        operand("f32", ((rows, columns)[1 - along],), (1 - along,), 2, 0),
    )
    return filled(
        LinalgOp(1, "linalg.generic", OpKind.REDUCTION, kinds, (rows, columns), (read,), (sums,), ("arith.addf",))
    )


def scaled_rows(rows: int, columns: int, element_type: str) -> Dispatch:
    """Return the rows of a matrix, each divided by its sum, which is of f32."""
    sums = row_sums(rows, columns, read_type=element_type)
    read, result = (operand(element_type, (rows, columns), (0, 1), 2) for _ in range(2))
    inputs, body = (read, operand("f32", (rows,), (0,), 2, 1)), ("arith.extf", "arith.divf", "arith.truncf")
    kinds = (PARALLEL,) * 2
    op = LinalgOp(2, "linalg.generic", OpKind.ELEMENTWISE, kinds, (rows, columns), inputs, (result,), body)
    return Dispatch((*sums.ops, op), (2,))


def elementwise(
    rows: int, columns: int, element_type: str = "f32", *, read: tuple[int, int] = (0, 1), body: str = "arith.addf"
) -> Dispatch:
    """Return an op on a matrix, which is read with its dimensions in an order."""
    extents = (rows, columns)
    image = operand(element_type, (extents[read[0]], extents[read[1]]), read, 2)
    result = operand(element_type, extents, (0, 1), 2)
    body_ops = tuple(body.split())
    op = LinalgOp(0, "linalg.generic", OpKind.ELEMENTWISE, (PARALLEL,) * 2, extents, (image,), (result,), body_ops)
    return Dispatch((op,), (0,))


DISPATCHES: Mapping[str, Dispatch] = {
    "3x3": windows(28, 16, 96),
    "many channels": windows(28, 48, 96),
    "few channels": windows(56, 3, 32, stride=2),
    "odd filters": windows(13, 24, 41),
    "rows of a prime": windows(17, 64, 96),
    "odd filters and rows of a prime": windows(19, 24, 41),
    "large channels": windows(7, 2048, 512),
    "filters outermost": channels_first(28, 3, 64),
    "long windows": windows(31, 16, 24, taps=7),
    "depthwise": windows(112, 32, 0),
    "depthwise with odd channels": windows(14, 75, 0, taps=5),
    "pooling": pooling(28, 24),
    "pooling of one window": pooling(1, 1000, taps=7, stride=1),
    "sums": row_sums(512, 1024),
    "short sums": row_sums(7, 49),
    "one sum": row_sums(1, 1000),
    "sums of columns": row_sums(784, 480, along=0),
    "rows of f16": scaled_rows(197, 48, "f16"),
    "rows of f64": scaled_rows(31, 1009, "f64"),
    "sum": elementwise(197, 1000),
    "narrow sum": elementwise(5, 3, "f64"),
    "transposed": elementwise(197, 96, read=(1, 0)),
    "transposed bytes": elementwise(64, 49, "i8", read=(1, 0)),
    "polynomials": elementwise(31, 1009, body="math.erf math.exp math.tanh arith.addf"),
}


def space_of(found: Dispatch, target: Target = FIXED) -> DesignSpace:
    return DesignSpace(Space.default(target), found, target)


def first(name: str, target: Target = FIXED) -> dict[str, Value]:
    return space_of(DISPATCHES[name], target).templates()[0].values


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", DISPATCHES)
def test_every_template_is_legal_as_it_is_made(name: str, machine: str) -> None:
    space = space_of(DISPATCHES[name], MACHINES[machine])
    made = [(space.completed(sketch, values), values) for sketch, values in space.guesses()]
    assert made
    for trace, values in made:
        pattern = EXACT["convolution" if trace.sketch == "convolution" else "others"]
        exact = [each for each in trace.decisions if each.name in values and re.match(pattern, each.name)]
        assert [each.value for each in exact] == [each.distribution.canonical(values[each.name]) for each in exact]


def test_a_window_has_most_rows_along_the_inner_image_loop_and_its_part_of_the_filter_in_the_cache() -> None:
    values, many = first("3x3"), first("many channels")
    assert (values["vector"], values["rows_1"], values["rows_0"]) == ((48,), (4,), (2,)), "24 of 32 registers"
    assert many["vector"] == (16,), "of 48 the part of the filter has 81 kB"
    assert first("few channels")["rows_1"] == (8,)
    assert values["innermost"] == "channels"


def test_a_window_without_channels_is_unrolled_and_its_image_stays_in_the_cache() -> None:
    values = first("depthwise")
    assert values["unrolled_loops"] == 2
    assert values["vector"] == (16,)
    (rows,) = cast("tuple[int]", values["workgroup_0"])
    used = 2 * rows * 112 * 32 * 4
    assert used <= FIXED.l2_bytes // 2 < 2 * used


def test_rows_of_a_prime_leave_a_tail() -> None:
    """Tiles of 1 of the 17 rows would read the filter anew for every pixel."""
    values = first("rows of a prime")
    assert values["tail"] == "peel"
    assert cast("int", values["rows_0"]) * cast("int", values["rows_1"]) > 4


def test_the_registers_hold_what_tiles_of_a_window_leave_over() -> None:
    """Of 120 channels tiles of 64 leave 56, which are seven vectors of 8 elements for every row."""
    found = 0
    for filters in range(17, 150):
        for _, values in space_of(windows(12, 8, filters)).guesses():
            if isinstance(width := values["vector"], int):
                rows = [values[f"rows_{loop}"] for loop in (0, 1)]
                high = math.prod(each if isinstance(each, int) else int(cast("tuple[int]", each)[0]) for each in rows)
                assert high * accumulators_of(filters % width, 16) <= 24
                found += 1
    assert found > 500


def test_vectors_of_a_window_are_as_many_as_leave_few_over() -> None:
    """Tiles of 2 vectors leave 4 of 100 filters; what tiles of 4 leave is 36, nine vectors of 4 elements."""
    assert space_of(windows(14, 64, 100)).templates()[0].values["vector"] == 32


def test_an_image_that_no_division_makes_small_is_not_divided() -> None:
    """Single pixels of 2048 channels would fit a quarter of a megabyte, and leave no rows for a register tile."""
    values = first("large channels", replace(FIXED, l2_bytes=1 << 18))
    assert (values["workgroup_0"], values["workgroup_1"]) == ((7,), (7,))


def test_a_sum_alone_takes_one_row_after_the_other_and_columns_lie_across_lanes() -> None:
    assert (first("sums")["rows"], first("sums")["lanes_1024"]) == ((1,), (32,))
    assert (first("short sums")["tail"], first("short sums")["lanes_49"]) == ("peel", 32)
    assert first("sums of columns")["rows"] == (32,)
