"""Products whose columns are several loops, as of weights in blocks: vectors that lie apart share a register tile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from fixed_targets import FIXED
from payload_text import Payload
from rule_ops import contraction, dispatch

from benchmarks.operators.shape_programs import Builder
from benchmarks.operators.shapes import ADD_RELU
from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import IllegalTraceError
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.tasks.task import Task
from mlir_sched.testing import check_candidates
from mlir_sched.trace import Recorder
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.llvm_cpu.contraction import Ways, registers
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction
from mlir_sched.transform_scripts.verbs.draws import MASK, PEEL

SpaceFor = Callable[[str | Payload], DesignSpace]
TaskFor = Callable[[str | Payload], Task]
BLOCKS = ("mk", "okf", "omf")
"""Rows, weights in blocks of columns, and the result in blocks, as loops of one letter."""


def matched(maps: tuple[str, str, str], **extents: int) -> Contraction:
    payload = dispatch(contraction(extents, maps))
    found = matchers.contraction(payload.ops[1], payload)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("maps", "extents", "further"),
    [
        (BLOCKS, {"o": 4, "m": 14, "f": 16, "k": 32}, "o"),
        (("bmk", "bkn", "bmn"), {"b": 4, "m": 14, "n": 16, "k": 32}, ""),
        (("hwk", "kn", "hwn"), {"h": 14, "w": 14, "n": 16, "k": 32}, ""),
    ],
)
def test_further_columns_are_read_neither_with_the_rows_nor_in_a_batch(
    maps: tuple[str, str, str], extents: dict[str, int], further: str
) -> None:
    found = matched(maps, **extents)
    assert "".join([*extents][found.position(loop)] for loop in found.further_columns) == further


def drawn(width: int, maps: tuple[str, str, str] = BLOCKS, blocks: int = 4) -> list[dict[str, Value]]:
    """Return what legal random register tiles of a product with blocks of columns decide."""
    found, decided = matched(maps, o=blocks, m=196, f=width, k=64), list[dict[str, Value]]()
    for seed in range(60):
        recorder = Recorder(rng=np.random.default_rng(seed))
        with suppress(IllegalTraceError):
            registers(Schedule(dispatch(found.op), FIXED, recorder), found, Ways(True, (PEEL, MASK)))
            decided.append(recorder.finish("contraction.registers").values)
    return decided


def test_vectors_that_lie_apart_are_offered_where_a_block_of_columns_is_one_vector() -> None:
    assert {values["apart"] for values in drawn(16)} == {(1,), (2,), (4,)}
    assert not any("apart" in values for values in drawn(32))
    assert not any("apart" in values for values in drawn(16, ("mk", "ofk", "omf"))), "strided columns"
    assert not any("apart" in values for values in drawn(16, ("okf", "mk", "omf"))), "crossed loops"
    assert not any("apart" in values for values in drawn(16, blocks=1))


def test_accumulators_of_all_vectors_stay_in_registers() -> None:
    for values in drawn(16):
        (apart,), tiles = ints(values["apart"]), ints(values.get("register_rows", values["rows"]))
        assert tiles[-1] * apart <= 24, values


def ints(value: Value) -> tuple[int, ...]:
    sizes = value if isinstance(value, tuple) else (value,)
    return tuple(size for size in sizes if isinstance(size, int))


def blocked_product(spec: str) -> Payload:
    """Return max(A B + bias, 0) with columns in blocks, and rows not of a size that tiles divide."""
    b, extents = Builder(), {"i": 3, "m": 37, "k": 16, "o": 4, "f": 16}
    rows, weights = (part.split(" ") for part in spec.split(" -> ")[0].split(", "))
    left, right = (b.argument(*(extents[loop] for loop in loops)) for loops in (rows, weights))
    made = b.contract(spec, left, right)
    return Payload(b.program(b.map([(made, "o, m, f"), (b.argument(4, 16), "o, f")], ADD_RELU, loops="o, m, f")))


@pytest.mark.promise
@pytest.mark.parametrize("spec", ["m k, o k f -> o m f", "i m k, o i k f -> o m f"])
def test_candidates_with_vectors_that_lie_apart_are_right(space_for: SpaceFor, task_for: TaskFor, spec: str) -> None:
    payload = blocked_product(spec)
    space, task, rng = space_for(payload), task_for(payload), np.random.default_rng(0)
    sampled = [space.sample(rng, "contraction.registers") for _ in range(80)]
    apart = [trace for trace in sampled if trace.values.get("apart", (1,)) != (1,)]
    traces = [*{trace.values.get("tail"): trace for trace in apart}.values()]
    assert {trace.values.get("tail") for trace in traces} >= {"divisor", "peel"}
    with Runner(RunnerOptions()) as runner, CompilerPool(task.flags) as pool:
        assert check_candidates(task, space, traces, pool, runner) == [None] * len(traces)
