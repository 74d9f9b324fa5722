"""Register tiles of templates: what is left over is priced at what it executes, and stays in vector registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from contraction_payloads import matmul
from fixed_targets import FIXED
from machine_code import machine_code
from payload_text import Payload
from replayed_run import matmul_dispatch
from rule_ops import contraction, dispatch

from mlir_sched.compiler import CompilerPool
from mlir_sched.payload import Dispatch
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.transform_scripts.extents import registers_of, stay_in_vectors
from mlir_sched.transform_scripts.llvm_cpu.contraction import ContractionTiling
from mlir_sched.transform_scripts.llvm_cpu.templates.register_tiles import (
    product_cost,
    step_cost,
)

MACHINES = {
    "avx512": FIXED,
    "avx2": replace(FIXED, vector_bytes=32, vector_registers=16),
    "neon": replace(FIXED, vector_bytes=16),
}


def guesses(found: Dispatch, target: Target = FIXED) -> Iterator[Mapping[str, Value]]:
    """Yield the values of the templates of a product, as they are guessed."""
    module = ContractionTiling()
    mm = module.match(found.root, found, target)
    assert mm is not None
    for template in module.templates(mm, found, target):
        yield template.values


@pytest.mark.parametrize(
    ("size", "registers"), [(1, 1), (5, 1), (15, 1), (16, 1), (17, 17), (32, 2), (36, 36), (48, 48), (64, 4)]
)
def test_what_is_longer_than_a_register_and_no_power_of_two_is_kept_as_scalars(size: int, registers: int) -> None:
    assert registers_of(size, 16) == registers


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_a_tail_costs_as_much_as_the_vectors_or_the_scalars_that_it_executes(lanes: int) -> None:
    for left in range(1, lanes + 1):
        whole = product_cost((6, 4 * lanes + lanes), (6, lanes), lanes)
        assert product_cost((6, 4 * lanes + left), (6, lanes), lanes) == whole
    left = 3 * lanes
    scalars = step_cost(6, left, 6 + left)
    assert product_cost((6, 4 * lanes + left), (6, 4 * lanes), lanes) == step_cost(6, 4, 10) + scalars


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_more_columns_or_rows_never_cost_less_by_tiles_of_one_vector(lanes: int) -> None:
    costs = np.array([[product_cost((m, n), (6, lanes), lanes) for n in range(1, 70)] for m in range(1, 20)])
    assert (np.diff(costs, axis=0) >= 0).all()
    assert (np.diff(costs, axis=1) >= 0).all()


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("rows", [1, 100])
def test_no_template_leaves_columns_that_become_scalars(rows: int, machine: str) -> None:
    """Tiles of 4 vectors leave 36 of 100 columns where vectors have 16 elements, and those of 2 leave 4."""
    target, found = MACHINES[machine], 0
    lanes = target.vector_elements(4)
    for columns in range(lanes + 1, 140):
        for values in guesses(matmul_dispatch(rows, columns, 64), target):
            if values.get("tail") == "peel":
                width = values["register_columns"]
                assert isinstance(width, int)
                assert stay_in_vectors(columns % width, lanes)
                found += 1
    assert found > 500


def test_a_product_takes_the_widest_tiles_whose_tail_stays_in_vectors() -> None:
    def first(columns: int) -> Value:
        return next(guesses(matmul_dispatch(197, columns, 64)))["register_columns"]

    assert [first(columns) for columns in (100, 240)] == [32, 32]
    assert next(guesses(matmul_dispatch(1, 1009, 64)))["register_columns"] == 16


def test_rows_that_tiles_for_the_caches_leave_over_are_priced_each_time() -> None:
    """Half of L2 holds 65 rows of 2000 floats, of which 50 divide 1000: tiles of 12 rows would leave 2, 20 times."""
    values = next(guesses(matmul_dispatch(1000, 100, 2000)))
    assert (values["rows"], values["register_rows"]) == ((50,), 10)


def test_half_of_the_rows_of_a_tile_that_leaves_a_tail_need_not_divide_it() -> None:
    """Of 17 rows the half is 8; the largest divisor up to 8 is 1."""
    scores = dispatch(contraction({"b": 4, "m": 49, "n": 49, "k": 32}, ("bmk", "bnk", "bmn")))
    assert [values["register_rows"] for values in islice(guesses(scores), 2)] == [17, 8]


@pytest.mark.landing
def test_the_compiler_keeps_what_is_no_power_of_two_as_scalars(
    space_for: Callable[[str | Payload], DesignSpace], task_for: Callable[[str | Payload], Task]
) -> None:
    """The code of the same product by tiles that leave 4 and 36 columns; if this fails, wide tiles may leave both."""
    payload = matmul(100, 100, 100)
    space, task = space_for(payload), task_for(payload)
    first = space.templates()[0]
    wide = space.completed(first.sketch, first.values | {"register_columns": 64, "register_rows": 5})
    with CompilerPool(task.flags) as pool:
        scripts = [space.script(trace) for trace in (first, wide)]
        code = {place: machine_code(each.vmfb) for place, each in pool.compile(task.source, scripts) if each.vmfb}
    assert 3 * len(code[0]) < len(code[1])
