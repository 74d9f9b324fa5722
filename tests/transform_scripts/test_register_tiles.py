"""Register tiles of templates: what is left over is priced at what it executes, and how it is cut into vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np
import pytest
from fixed_targets import FIXED
from replayed_run import matmul_dispatch
from rule_ops import contraction, dispatch

from mlir_sched.payload import Dispatch
from mlir_sched.sampling import Value
from mlir_sched.transform_scripts.extents import piece, registers_of, stay_in_vectors
from mlir_sched.transform_scripts.llvm_cpu.contraction import ContractionTiling
from mlir_sched.transform_scripts.llvm_cpu.templates.register_tiles import product_cost, step_cost


def guesses(found: Dispatch) -> Iterator[Mapping[str, Value]]:
    """Yield the values of the templates of a product, as they are guessed."""
    module = ContractionTiling()
    mm = module.match(found.root, found, FIXED)
    assert mm is not None
    for template in module.templates(mm, found, FIXED):
        yield template.values


@pytest.mark.parametrize(
    ("size", "registers"), [(1, 1), (5, 1), (15, 1), (16, 1), (17, 17), (32, 2), (36, 36), (48, 48), (64, 4)]
)
def test_what_is_longer_than_a_register_and_no_power_of_two_is_kept_as_scalars(size: int, registers: int) -> None:
    assert registers_of(size, 16) == registers


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_a_tail_costs_as_much_as_the_vectors_that_it_executes(lanes: int) -> None:
    for left in range(1, lanes + 1):
        whole = product_cost((6, 4 * lanes + lanes), (6, lanes), lanes)
        assert product_cost((6, 4 * lanes + left), (6, lanes), lanes) == whole
    left = 2 * lanes + 1
    pieces = step_cost(6, 2, 8) + step_cost(6, 1, 7)
    assert product_cost((6, 4 * lanes + left), (6, 4 * lanes), lanes) == step_cost(6, 4, 10) + pieces


@pytest.mark.parametrize(
    ("rest", "size"), [(1, 1), (13, 13), (16, 16), (17, 16), (31, 16), (32, 32), (36, 32), (48, 32), (49, 16), (63, 16)]
)
def test_sums_that_are_no_vector_are_cut_into_vectors(rest: int, size: int) -> None:
    assert piece(rest, 16) == size


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_all_pieces_are_vectors_and_no_rest_that_is_one_is_cut(lanes: int) -> None:
    for rest in range(1, 4 * lanes):
        size = piece(rest, lanes)
        assert stay_in_vectors(size, lanes)
        assert stay_in_vectors(rest % size, lanes)
        assert (size == rest) == stay_in_vectors(rest, lanes)


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_more_columns_or_rows_never_cost_less_by_tiles_of_one_vector(lanes: int) -> None:
    costs = np.array([[product_cost((m, n), (6, lanes), lanes) for n in range(1, 70)] for m in range(1, 20)])
    assert (np.diff(costs, axis=0) >= 0).all()
    assert (np.diff(costs, axis=1) >= 0).all()


def test_columns_that_are_left_over_do_not_decide_how_wide_tiles_are() -> None:
    """Tiles of 64 leave 36 of 100 columns: 32 and 4."""

    def widths(rows: int, columns: int) -> set[Value | None]:
        return {values.get("register_columns") for values in guesses(matmul_dispatch(rows, columns, 64))}

    assert widths(197, 100) == {16, 32, 64}
    assert widths(197, 36) == {16, 32}
    assert widths(1, 1009) == {32, 64}


def test_rows_that_tiles_for_the_caches_leave_over_are_priced_each_time() -> None:
    """Half of L2 holds 65 rows of 2000 floats, of which 50 divide 1000: tiles of 12 rows would leave 2, 20 times."""
    values = next(guesses(matmul_dispatch(1000, 100, 2000)))
    assert (values["rows"], values["register_rows"]) == ((50,), 10)


def test_half_of_the_rows_of_a_tile_that_leaves_a_tail_need_not_divide_it() -> None:
    """Of 17 rows the half is 8; the largest divisor up to 8 is 1."""
    scores = dispatch(contraction({"b": 4, "m": 49, "n": 49, "k": 32}, ("bmk", "bnk", "bmn")))
    assert [values["register_rows"] for values in islice(guesses(scores), 2)] == [17, 8]
