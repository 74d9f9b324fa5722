"""What cost models see of candidates: every decision leaves a trace in the features, or is known to leave none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from attention_programs import in_one_dispatch
from convolution_payloads import CONVOLUTIONS
from fixed_targets import FIXED
from payload_text import Payload
from payloads import PAYLOADS, column_sum
from replayed_run import matmul_dispatch
from several_results_payloads import SEVERAL_RESULTS

from benchmarks.corpus.families import FAMILIES
from benchmarks.corpus.sets import COLLECTED, NETWORKS
from mlir_sched.corpus.files import SHIPPED, SUFFIX, read_task
from mlir_sched.errors import IllegalTraceError
from mlir_sched.sampling import Categorical
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.features import GLOBAL
from mlir_sched.space.space import Space
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace

UNSEEN: Mapping[str, str] = {"vector_loop": "no loop is along vectors of one element"}
"""Words that may leave no trace in the features where the loops are the same, with the reason."""
SERVER = replace(FIXED, description="+avx512f,+avx512bf16,+avx512vnni")
ATTENTION = {"heads": Payload(in_one_dispatch(3, 24, 64, 32)), "one_head": Payload(in_one_dispatch(1, 40, 192, 16))}
ALL_MODULES = {**PAYLOADS, **CONVOLUTIONS, **SEVERAL_RESULTS, **ATTENTION}
DRAWS, VALUES = 8, 3
"""Traces per sketch, and other values of each of their decisions, that are looked at."""


def first_of(folder: Path, names: str) -> Path:
    return sorted(folder.rglob(f"{names}{SUFFIX}"))[0]


COLLECTED_TASKS = [
    *(first_of(SHIPPED, f"*/pools/{next(iter(programs))}") for programs in FAMILIES.values()),
    *(path for network in NETWORKS for path in sorted(COLLECTED.rglob(f"*/courses/{network}*{SUFFIX}"))[::2]),
]


def neighbours(space: DesignSpace, trace: Trace, rng: np.random.Generator) -> Iterator[Trace]:
    """Yield candidates that evolution makes of a trace by another value of one of its decisions."""
    for decision in trace.decisions:
        for _ in range(VALUES):
            if (value := decision.distribution.mutate(decision.value, rng)) is not None:
                with suppress(IllegalTraceError):
                    yield space.repaired(trace.with_value(decision.name, value))


def loops(space: DesignSpace, trace: Trace) -> list[tuple[int, list[tuple[int, ...]]]]:
    """Return the tiles of every op from level to level, without loops of one iteration."""
    return [
        (nest.op.index, [tile for tile, _ in groupby(level.tile for level in nest.levels)])
        for nest in space.check(trace).nests
    ]


def differing(first: Trace, second: Trace) -> dict[str, bool]:
    """Return the decisions in which two traces differ, and whether each is a choice that both make."""
    words = {each.name for each in first.decisions if isinstance(each.distribution, Categorical)}
    both = words & second.values.keys()
    names = {*first.values, *second.values}
    return {name: name in both for name in names if first.values.get(name) != second.values.get(name)}


def unseen(space: DesignSpace) -> Iterator[list[str]]:
    """Yield the decisions in which two candidates differ that have the same features, and are not the same program.

    Sizes and orders that make the same loops make the same program: a loop may be one over cache tiles, or over
    register tiles. So do choices that only one of them has, which follow from the loops.
    """
    rng = np.random.default_rng(0)
    for sketch in space.sketches:
        for trace in (space.sample(rng, sketch) for _ in range(DRAWS)):
            for other in neighbours(space, trace, rng):
                row, changed = (space.features([each])[0] for each in (trace, other))
                if np.array_equal(row, changed):
                    names = differing(trace, other)
                    if loops(space, trace) == loops(space, other):
                        names = {name: True for name, chosen in names.items() if chosen}
                    if not names.keys() <= UNSEEN.keys():
                        yield sorted(names)


def check(space: DesignSpace) -> None:
    assert not list(unseen(space)), "the cost model cannot tell candidates apart that differ in these decisions"


@pytest.mark.parametrize("path", COLLECTED_TASKS, ids=lambda path: path.name.removesuffix(SUFFIX))
def test_decisions_on_collected_dispatches_leave_a_trace_in_the_features(path: Path) -> None:
    check(read_task(path).space)


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", ALL_MODULES)
def test_decisions_of_all_modules_for_cpus_leave_a_trace_in_the_features(
    name: str, task_for: Callable[[Payload], Task]
) -> None:
    dispatch = task_for(ALL_MODULES[name]).dispatch
    assert dispatch is not None
    check(DesignSpace(Space.default(SERVER), dispatch, SERVER))


def test_a_copied_operand_is_seen() -> None:
    """Two candidates that differ in nothing but whether columns are read in place or from a copy."""
    space, rng = read_task(first_of(SHIPPED, "*/pools/scores_16x64x64x64")).space, np.random.default_rng(0)
    drawn = (space.sample(rng, "contraction.registers") for _ in range(200))
    trace = next(each for each in drawn if each.values.get("columns_operand") == "panel")
    in_place = trace.with_value("columns_operand", "in_place")
    different = np.flatnonzero(np.diff(space.features([trace, in_place]), axis=0)[0])
    assert len(different) == 1


def executed(space: DesignSpace, *traces: Trace) -> list[float]:
    """Return how many elements are computed per element of the result's contiguous dimension."""
    return [2 ** float(row[GLOBAL - 1]) - 1 for row in space.features(traces)]


def test_what_tiles_of_a_product_leave_over_is_seen_as_vectors() -> None:
    """Of 100 columns tiles of 32 leave 4, one vector of 16, and those of 64 leave 36, three; masked tiles have all."""
    space = DesignSpace(Space.default(FIXED), matmul_dispatch(100, 100, 64), FIXED)
    first = space.templates()[0]
    tiles = [{"tail": "peel", "register_columns": width, "register_rows": 5} for width in (32, 64)]
    narrow, wide = (space.completed(first.sketch, first.values | tile) for tile in tiles)
    masked = space.completed(first.sketch, wide.values | {"tail": "mask"})
    assert executed(space, narrow, wide, masked) == pytest.approx([7 * 16 / 100, 7 * 16 / 100, 2 * 64 / 100], rel=1e-4)


def test_other_sums_that_tiles_leave_over_are_seen_as_scalars(task_for: Callable[[Payload], Task]) -> None:
    """Of 100 columns, each summed along the rows, tiles of 64 make 4 vectors and leave 36 sums."""
    dispatch = task_for(column_sum(784, 100)).dispatch
    assert dispatch is not None
    space = DesignSpace(Space.default(FIXED), dispatch, FIXED)
    trace = space.completed("reduction", {"workgroup_0": (100,), "tail": "peel", "rows": 64})
    assert executed(space, trace) == pytest.approx([(4 + 36) * 16 / 100], rel=1e-4)
