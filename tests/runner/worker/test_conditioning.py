"""What is excused because rounding decides it, and what must not be: a fault is planted beside every kind of excuse."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from itertools import pairwise

import numpy as np
import pytest
from array_device import ArrayDevice, Function

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.inputs import PROBES
from mlir_sched.runner.checks.numeric_checks import checks_for_model
from mlir_sched.runner.program import Program
from mlir_sched.runner.worker.comparison import Movements, compare, deviations
from mlir_sched.runner.worker.workspace import Workspace
from mlir_sched.tensors.element_types import Array

SIZE = 100
STEEP = np.float32(3e3)
"""Factor in the argument of a sine, of which one rounding moves the result by 1e-4."""


def verdicts(right: Function, wrong: Function, *shapes: tuple[int, ...]) -> list[str | None]:
    """Return what every check says of a wrong program; its input and first result are vectors, others have shapes."""
    vector = TensorSpec((SIZE,), "f32")
    outputs = (vector, *(TensorSpec(shape, "f32") for shape in shapes))
    device = ArrayDevice({"right": right, "wrong": wrong})
    programs = [Program(b"", name, (vector,), outputs, writes_into_arguments=False) for name in ("right", "wrong")]
    made = Workspace(device, programs[0], checks_for_model(outputs))  # type: ignore[arg-type]
    assert not any(made.verify(device.load(programs[0]), index) for index in range(len(made.checks)))
    return [made.verify(device.load(programs[1]), index) for index in range(len(made.checks))]


def beside(value: float, planted: float) -> tuple[Function, Function]:
    """Return a right program, whose second result is one value, and a wrong one with another value there."""

    def compute(second: float) -> Function:
        def function(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            outputs[0][...] = inputs[0]
            outputs[1][...] = second

        return function

    return compute(value), compute(planted)


@pytest.mark.parametrize("shape", [(SIZE,), (1,), ()])
@pytest.mark.parametrize(("value", "planted"), [(0.0, 1e6), (0.0, 1e-30), (0.0, math.nan), (1.0, 1.02)])
def test_no_excuse_lets_a_wrong_result_pass_for_a_constant(
    shape: tuple[int, ...], value: float, planted: float
) -> None:
    assert all(verdicts(*beside(value, planted), shape))


def test_a_number_is_wrong_where_some_elements_are_nan_in_every_check() -> None:
    def compute(kept: slice) -> Function:
        def function(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            outputs[0][...] = np.sin(STEEP * inputs[0])
            outputs[0][kept] = np.nan

        return function

    assert all("NaN" in (message or "") for message in verdicts(compute(slice(0, 50)), compute(slice(0, 49))))


def test_an_empty_result_excuses_nothing_in_the_other_one() -> None:
    def right(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = 2 * inputs[0]

    def wrong(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = 2 * inputs[0] * np.float32(1.005)

    assert all(verdicts(right, wrong, (0, 4)))


@pytest.mark.parametrize("sensitive", [1, 20])
def test_sensitive_elements_excuse_only_themselves(sensitive: int) -> None:
    def compute(factor: float, reordered: bool) -> Function:
        def function(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            outputs[0][...] = inputs[0] * np.float32(factor)
            few = inputs[0][:sensitive]
            steep = np.float32(3) * (np.float32(1e3) * few) if reordered else STEEP * few
            outputs[0][:sensitive] = np.sin(steep)

        return function

    right = compute(1.0, reordered=False)
    assert verdicts(right, compute(1.0, reordered=True)) == [None, None]
    assert all(verdicts(right, compute(1.001, reordered=False)))


def steep(values: Array) -> Array:
    """Return a sine whose argument is multiplied in one step."""
    return np.asarray(np.sin(STEEP * values))


def reordered(values: Array) -> Array:
    """Return the same sine with its argument multiplied in two steps."""
    return np.asarray(np.sin(np.float32(3) * (np.float32(1e3) * values)))


def enlarged(values: Array) -> Array:
    """Return a sine that is too large."""
    return steep(values) * np.float32(1.001)


@pytest.mark.parametrize(("made", "probes"), [(steep, range(1)), (reordered, range(1, PROBES)), (enlarged, {PROBES})])
def test_the_baseline_is_called_on_rounded_inputs_as_few_times_as_show_that_they_explain_a_result(
    made: Callable[[Array], Array], probes: Container[int]
) -> None:
    calls = list[int]()

    def right(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        calls.append(len(calls))
        outputs[0][...] = steep(inputs[0])

    def other(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = made(inputs[0])

    vector = TensorSpec((SIZE,), "f32")
    device = ArrayDevice({"right": right, "other": other})
    programs = [Program(b"", name, (vector,), (vector,), writes_into_arguments=False) for name in ("right", "other")]
    workspace = Workspace(device, programs[0], checks_for_model((vector,)))  # type: ignore[arg-type]
    before = len(calls)
    verdicts = [workspace.verify(device.load(programs[1]), 1) for _ in range(2)]
    assert all(verdicts) if made is enlarged else not any(verdicts)
    assert len(calls) - before in probes


def test_what_the_baseline_does_not_move_is_not_explained_and_what_it_loses_is_bounded() -> None:
    reference = np.ones(4, np.float32)
    moved = np.array([1.0, 1.0 + 1e-5, 2.0, np.nan], np.float32)
    movements, bounds = Movements([reference]), list[Array]()
    for number in range(PROBES):
        movements.add([moved if number else reference])
        bounds.append(movements.bound(0))
    assert all((one <= following).all() for one, following in pairwise(bounds)), "few probes explain no more than all"
    explained = bounds[-1]
    assert explained[0] == 0.0
    assert explained[1] == pytest.approx(128 * 1e-5 * math.sqrt(7 / 8), rel=0.05)
    assert (explained[2:] == 0.01).all()


@pytest.mark.parametrize(
    ("reference", "actual", "worst"),
    [
        (np.zeros(4), np.array([0, 0, 1e-30, 0]), math.inf),
        (np.zeros(1), np.ones(1), math.inf),
        (np.full(3, np.nan), np.array([np.nan, 0, np.nan]), math.inf),
        (np.full(3, np.nan), np.full(3, np.nan), 0.0),
        (np.array([np.inf, 1]), np.array([-np.inf, 1]), math.inf),
        (np.array([0.0, 2.0]), np.array([0.0, 1.0]), 0.5),
        (np.full(2, 1e300), np.array([1e300, 1.5e300]), 0.5),
        (np.full(2, 1e-300), np.array([1e-300, 1.5e-300]), 0.5),
    ],
)
def test_the_deviation_is_infinite_where_nothing_is_allowed(reference: Array, actual: Array, worst: float) -> None:
    assert deviations(reference, actual).max() == pytest.approx(worst)
    wrong = compare(reference, actual, TensorSpec(reference.shape, "f64"), 0.1)
    assert (wrong is not None) == (worst > 0.1)


def test_an_empty_result_deviates_nowhere() -> None:
    assert deviations(np.zeros((0, 3)), np.zeros((0, 3))).size == 0
