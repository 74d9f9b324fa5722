"""A measured task counts what is legal today, and refuses what nobody can have measured."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from measured_tasks import DISPATCH, draws, failed, measured_task, timed
from replayed_run import TARGET, matmul_dispatch

from mlir_sched.corpus import Measurement, Origin
from mlir_sched.errors import FailureClass, IllegalTraceError
from mlir_sched.payload import Dispatch, LinearExpr
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.features import COUNT
from mlir_sched.space.space import Space
from mlir_sched.trace import Trace

SPACE = DesignSpace(Space.default(TARGET), DISPATCH, TARGET)


def refused(trace: Trace) -> bool:
    try:
        SPACE.check(trace)
    except IllegalTraceError:
        return True
    return False


def test_the_features_are_those_of_the_default_space() -> None:
    traces = draws(8)
    task = measured_task([timed(trace) for trace in traces])
    assert task.features().dtype == np.float32
    assert np.array_equal(task.features(), SPACE.features(traces))
    assert task.sketches == SPACE.sketches
    assert measured_task().features().shape == (0, COUNT)


def test_what_is_not_legal_today_is_dropped_and_counted() -> None:
    first, second, third = draws(3)
    other = next(trace for trace in draws(64, matmul_dispatch(48, 80, 56)) if refused(trace))
    measured = [timed(first), timed(Trace("gone", ())), failed(second), timed(other), timed(third, 4.0, Origin.MODEL)]
    task = measured_task(measured)
    assert task.traces == (first, second, third)
    assert task.seconds.tolist() == [5e-4, math.inf, 2.5e-4]
    assert task.origins == (Origin.RANDOM, Origin.MODEL, Origin.MODEL)
    assert len(task.features()) == 3
    assert task.dropped == 2
    assert len(task.measured) == 5


def changed(at: int, **fields: object) -> Dispatch:
    """Return the dispatch with one op changed: op 0 is the fill, op 1 the product."""
    ops = list(DISPATCH.ops)
    ops[at] = replace(ops[at], **fields)  # type: ignore[arg-type]
    return replace(DISPATCH, ops=tuple(ops))


def read_as(**fields: object) -> Dispatch:
    """Return the dispatch with another first input of its product."""
    first, second = DISPATCH.ops[1].inputs
    return changed(1, inputs=(replace(first, **fields), second))  # type: ignore[arg-type]


FIRST = DISPATCH.ops[1].inputs[0]


@pytest.mark.parametrize(
    ("dispatch", "why"),
    [
        (Dispatch((), ()), "no ops"),
        (replace(DISPATCH, results=()), "no ops"),
        (replace(DISPATCH, results=(2,)), "no ops"),
        (changed(1, index=0), "another number"),
        (changed(1, extents=(64, 96)), "without an extent"),
        (changed(1, extents=(64, 0, 128)), "without an extent"),
        (changed(0, iterator_types=("parallel", "window")), "no known kind"),
        (changed(1, inputs=(FIRST,)), "lacks operands"),
        (changed(0, outputs=()), "lacks operands"),
        (read_as(indexing_map=FIRST.indexing_map[:1]), "of another rank"),
        (read_as(indexing_map=(LinearExpr((1, 0)), LinearExpr((0, 1)))), "of another rank"),
        (read_as(tensor=replace(FIRST.tensor, element_type="f31")), "of no known size"),
        (read_as(tensor=replace(FIRST.tensor, shape=(64, 0))), "of no known size"),
        (read_as(producer=1), "made later"),
        (read_as(padded=(2,)), "not there"),
    ],
)
def test_what_no_dispatch_looks_like_is_refused(dispatch: Dispatch, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        measured_task(dispatch=dispatch)


def test_a_time_and_a_target_have_to_be_possible() -> None:
    trace = draws(1)[0]
    with pytest.raises(ValueError, match="untuned"):
        replace(measured_task(), untuned_s=0.0)
    with pytest.raises(ValueError, match="twice"):
        measured_task([timed(trace), failed(trace)])
    with pytest.raises(ValueError, match="cores"):
        measured_task(target=replace(TARGET, cores=0))
    with pytest.raises(ValueError, match="either a time"):
        Measurement(trace, math.inf, None, None, Origin.RANDOM)
    with pytest.raises(ValueError, match="either a time"):
        Measurement(trace, 1e-3, (1.0, 1.0, 1.0), FailureClass.WRONG_RESULT, Origin.RANDOM)
    for number in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="nobody"):
            Measurement(trace, 1e-3, (1.0, number, 1.0), None, Origin.RANDOM)
