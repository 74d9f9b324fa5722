"""Measured candidates as a space: everything stays inside of the table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.search.enumeration import enumerate_traces
from benchmarks.search.measured_space import MeasuredSpace
from mlir_sched.errors import IllegalTraceError
from mlir_sched.sampling import Categorical, PerfectTile
from mlir_sched.search import RandomSearch
from mlir_sched.search.synthetic_space import SyntheticMatmulSpace
from mlir_sched.trace import Decision, Trace

SPACE = SyntheticMatmulSpace(4, 4, 2)
TRACES = [trace for sketch in ("rows", "packed") for trace in enumerate_traces(SPACE, sketch)]
ROWS = SPACE.features(TRACES)
SECONDS = np.array([SPACE.seconds(trace) or math.inf if row % 7 else math.inf for row, trace in enumerate(TRACES)])


def space_of(rows: slice) -> MeasuredSpace:
    return MeasuredSpace("example", TRACES[rows], ROWS[rows], SECONDS[rows])


@pytest.fixture(scope="module")
def table() -> MeasuredSpace:
    return space_of(slice(None))


def test_everything_stays_inside_the_table(table: MeasuredSpace) -> None:
    rng = np.random.default_rng(0)
    known = {trace.key: row for row, trace in enumerate(TRACES)}
    for sketch in (None, "rows", "packed"):
        for _ in range(100):
            trace = table.sample(rng, sketch)
            row = known[trace.key]
            assert sketch in (None, trace.sketch)
            assert table.repaired(trace) is table.repaired(trace)
            assert (table.seconds(trace) or math.inf) == SECONDS[row]
            assert table.features([trace])[0].tolist() == ROWS[row].tolist()


def test_a_changed_decision_may_bring_or_drop_other_variables(table: MeasuredSpace) -> None:
    for trace in TRACES[-500:]:
        changed = trace.with_value("pack", "lhs" if trace.values["pack"] == "rhs" else "rhs")
        repaired = table.repaired(changed)
        assert repaired.values["pack"] == changed.values["pack"]
        assert all(repaired.values[name] == value for name, value in changed.values.items() if name != "pack_width")
        assert ("pack_width" in repaired.values) == (changed.values["pack"] == "rhs")


def test_what_is_not_in_the_table_is_illegal() -> None:
    table = space_of(slice(1, 2))
    with pytest.raises(IllegalTraceError, match="no measured candidate"):
        table.repaired(TRACES[2])
    with pytest.raises(IllegalTraceError, match="sketch"):
        table.sample(np.random.default_rng(0), "packed")


def test_a_search_of_a_table_finds_every_point_once() -> None:
    search = RandomSearch(space_of(slice(60)), np.random.default_rng(0))
    found: list[str] = []
    while traces := search.suggest(16):
        found += [trace.key for trace in traces]
    assert sorted(found) == sorted(trace.key for trace in TRACES[:60])


def test_the_best_ignores_failures(table: MeasuredSpace) -> None:
    assert table.best_s == SECONDS[np.isfinite(SECONDS)].min()


@pytest.mark.parametrize("traces", [[], TRACES[1:2] * 2])
def test_no_traces_or_equal_traces_are_refused(traces: list[Trace]) -> None:
    with pytest.raises(ValueError, match="distinct"):
        MeasuredSpace("wrong", traces, ROWS[: len(traces)], SECONDS[1 : 1 + len(traces)])


def test_a_space_without_a_valid_candidate_is_refused() -> None:
    with pytest.raises(ValueError, match="all candidates of example failed"):
        space_of(slice(1))


def test_variables_whose_values_do_not_compare_are_not_shared() -> None:
    tail, rows = Categorical(("divisor", "peel")), Decision("rows", PerfectTile(8, 1), (4,))
    nested, whole = PerfectTile(8, 2), PerfectTile(8, 1)
    traces = [
        Trace("a", (Decision("tail", tail, "divisor"), Decision("columns", nested, (8, 2)), rows)),
        Trace("a", (Decision("tail", tail, "peel"), Decision("columns", whole, (4,)), rows)),
        Trace("a", (Decision("tail", tail, "peel"), Decision("columns", whole, (4,)))),
    ]
    table = MeasuredSpace("tails", traces, np.zeros((3, 1), np.float32), np.ones(3))
    assert table.repaired(traces[0].with_value("tail", "peel")) == traces[1]
    with pytest.raises(IllegalTraceError, match="no measured candidate"):
        table.repaired(traces[1].with_value("columns", (2,)))
