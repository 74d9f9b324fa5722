"""The order of a product's loops over cache tiles: drawn among those that have several iterations."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from fixed_targets import FIXED
from replayed_run import matmul_dispatch

from mlir_sched.compiler import CompilerPool
from mlir_sched.sampling import Permutation
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace

ROWS, COLUMNS, DEPTH = 96, 128, 60
SPACE = DesignSpace(Space.default(FIXED), matmul_dispatch(ROWS, COLUMNS, DEPTH), FIXED)
SKETCHES = ("contraction.registers", "contraction.cache")


def drawn(sketch: str, space: DesignSpace = SPACE, count: int = 100) -> list[Trace]:
    rng = np.random.default_rng(0)
    return [space.sample(rng, sketch) for _ in range(count)]


def order_of(trace: Trace) -> Permutation:
    (found,) = [each.distribution for each in trace.decisions if each.name == "cache_order"]
    assert isinstance(found, Permutation)
    return found


def single(trace: Trace) -> set[str]:
    """Return the loops of one iteration: their cache tile is all that the workgroup has of them."""
    whole = {"rows": trace.values["workgroup_0"], "columns": trace.values["workgroup_1"], "reduction": (DEPTH,)}
    return {name for name in order_of(trace).items if whole[name][0] == trace.values[name][0]}  # type: ignore[index]


def twins(trace: Trace) -> list[Trace]:
    """Return the traces that differ in the places of the loops of one iteration alone."""
    order, value = order_of(trace), trace.values["cache_order"]
    equal = [each for each in itertools.permutations(order.items) if order.distance(each, value) == 0]
    return [trace.with_value("cache_order", each) for each in equal if each != value]


@pytest.mark.parametrize("sketch", SKETCHES)
def test_loops_of_one_iteration_are_drawn_in_one_place(sketch: str) -> None:
    moving = set()
    for trace in drawn(sketch):
        order = order_of(trace)
        assert set(order.still) == single(trace)
        assert trace.values["cache_order"] in order.support()
        moving.add(len(order.items) - len(order.still))
    assert moving == set(range(len(order_of(drawn(sketch, count=1)[0]).items) + 1))


@pytest.mark.parametrize("sketch", SKETCHES)
def test_what_was_drawn_with_such_loops_elsewhere_is_legal_and_looks_the_same(sketch: str) -> None:
    found = [(trace, twin) for trace in drawn(sketch, count=20) for twin in twins(trace)]
    assert found
    for trace, twin in found:
        assert SPACE.legal(twin).key == twin.key != trace.key
        assert np.array_equal(SPACE.features([twin]), SPACE.features([trace]))
        assert SPACE.repaired(twin) == trace, "evolution goes on with the one that is drawn"


@pytest.fixture(scope="module")
def target(here: Target) -> Target:
    return here


@pytest.mark.landing
@pytest.mark.parametrize("sketch", SKETCHES)
def test_such_loops_make_the_same_program_wherever_they_are(
    sketch: str, task_for: Callable[[str], Task], space_for: Callable[[str], DesignSpace], pool: CompilerPool
) -> None:
    for payload in ("matmul", "bias_gelu"):
        space = space_for(payload)
        pairs = [(trace, twins(trace)[-1]) for trace in drawn(sketch, space, 12) if twins(trace)][:3]
        scripts = [space.script(trace, "applied") for pair in pairs for trace in pair]
        results = dict(pool.compile(task_for(payload).source, scripts))
        hashes = [results[number].binary_hash for number in range(len(scripts))]
        assert all(hashes)
        assert hashes[::2] == hashes[1::2]
