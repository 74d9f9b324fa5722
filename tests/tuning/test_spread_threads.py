"""Candidates of another number of threads keep what a workgroup computes, and give every thread equal work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from replayed_run import TARGET, matmul_dispatch

from mlir_sched.search import RandomSearch
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.features import EVENNESS, WORKGROUPS
from mlir_sched.space.space import Space
from mlir_sched.trace import Trace
from mlir_sched.tuning.transfer import DISTRIBUTION, MOST_PER_THREAD, spread_anew

DISPATCH = matmul_dispatch(256, 384, 128)


def space(threads: int) -> DesignSpace:
    target = replace(TARGET, cores=threads)
    return DesignSpace(Space.default(target), DISPATCH, target)


def workgroups(on: DesignSpace, trace: Trace) -> int:
    return round(2 ** float(on.features([trace])[0][WORKGROUPS]) - 1)


@pytest.mark.parametrize("threads", [1, 2, 4, 6])
def test_every_thread_has_equally_many_workgroups_and_few(threads: int) -> None:
    several, drawn = space(threads), RandomSearch(space(1), np.random.default_rng(0)).suggest(24)
    spread = [spread_anew(several, trace) for trace in drawn]
    counts = [workgroups(several, trace) for trace in spread]
    even = [count % threads == 0 and count <= threads * MOST_PER_THREAD for count in counts]
    assert sum(even) > 0.8 * len(even)
    assert all(several.features([trace])[0][EVENNESS] == 1.0 for trace, good in zip(spread, even, strict=True) if good)
    before = [several.repaired(trace) for trace in drawn]
    assert sum(workgroups(several, t) % threads == 0 for t in before) <= sum(even)


def test_what_a_workgroup_computes_stays_where_it_fits() -> None:
    several, drawn = space(4), RandomSearch(space(1), np.random.default_rng(1)).suggest(24)
    kept = []
    for trace in drawn:
        spread = spread_anew(several, trace)
        assert several.legal(spread) == spread
        inner = {name: value for name, value in trace.values.items() if not name.startswith(DISTRIBUTION)}
        kept.append(np.mean([spread.values.get(name) == value for name, value in inner.items()]))
    assert np.mean(kept) > 0.8
    assert spread_anew(several, drawn[0]) == spread_anew(space(4), drawn[0]), "it is deterministic"


def test_a_trace_that_is_not_spread_stays_as_it_is() -> None:
    foreign = Trace("lowering_config", ())
    assert spread_anew(space(2), foreign) is foreign
