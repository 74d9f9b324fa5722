"""Which inputs the references are computed on, and what is refused because nothing could be told from right numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from array_device import ArrayDevice, Function

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import Check, InputKind
from mlir_sched.runner.checks.inputs import fan
from mlir_sched.runner.checks.numeric_checks import checks_for_model
from mlir_sched.runner.program import Program
from mlir_sched.runner.worker.references import telling, why_unverifiable
from mlir_sched.runner.worker.workspace import Workspace
from mlir_sched.tensors.element_types import DTYPES, Array

VECTOR, MATRIX = (100,), (64, 64)
LAYERS = 60


def workspace(
    function: Function, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], **others: Function
) -> tuple[Workspace, ArrayDevice]:
    """Return the workspace of a whole program that a function computes, on a device that knows others as well."""
    device = ArrayDevice({"main": function, **others})
    program = Program(b"", "main", tuple(inputs), tuple(outputs), writes_into_arguments=False)
    return Workspace(device, program, checks_for_model(outputs)), device  # type: ignore[arg-type]


def references(made: Workspace) -> list[Array]:
    """Return the reference of the first output in every check."""
    return [case.references[0] for case in made._cases]


def chain(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Multiply by the same weights in every one of many layers."""
    values, weights = inputs[0], inputs[1].astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(LAYERS):
            values = (values.astype(np.float32) @ weights).astype(inputs[0].dtype)
    outputs[0][...] = values


@pytest.mark.parametrize("element_type", ["f32", "f16", "bf16"])
def test_weights_of_deep_programs_are_scaled_until_the_results_are_finite(element_type: str) -> None:
    spec = TensorSpec(MATRIX, element_type)
    made, _ = workspace(chain, (spec, spec), (spec,))
    again, _ = workspace(chain, (spec, spec), (spec,))
    random = next(i for i, check in enumerate(made.checks) if check.gain is not None)
    assert np.isfinite(references(made)[random]).all()
    assert np.unique(references(made)[random]).size > 1000
    assert made.checks == again.checks
    assert references(made)[random].tobytes() == references(again)[random].tobytes()


def test_inputs_that_give_finite_results_stay_as_they_are() -> None:
    spec = TensorSpec(VECTOR, "f32")
    made, _ = workspace(lambda x, y: np.copyto(y[0], x[0]), (spec,), (spec,))
    assert made.checks == checks_for_model((spec,))


def test_logarithms_are_taken_of_positive_numbers() -> None:
    spec = TensorSpec(VECTOR, "f32")

    def logarithm(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        with np.errstate(invalid="ignore"):
            outputs[0][...] = np.log(inputs[0])

    made, _ = workspace(logarithm, (spec,), (spec,))
    assert [check.kind for check in made.checks] == [InputKind.EXACT, InputKind.POSITIVE]
    assert np.isfinite(references(made)[1]).all()


def test_inputs_whose_results_are_all_zero_are_replaced() -> None:
    spec = TensorSpec(VECTOR, "f32")

    def vanishing(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = inputs[0] if inputs[0].min() > 0 else 0

    made, _ = workspace(vanishing, (spec,), (spec,))
    assert [check.kind for check in made.checks] == [InputKind.EXACT, InputKind.POSITIVE]
    assert references(made)[1].any()


def test_fan_is_the_mean_of_what_goes_in_and_out() -> None:
    assert [fan(shape) for shape in ((), (7,), (64, 128), (64, 32, 3, 3), (3, 3, 32, 64))] == [1, 1, 96, 432, 432]


def _write(value: object) -> Function:
    def write(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        for output in outputs:
            output[...] = value

    return write


@pytest.mark.parametrize("element_type", DTYPES)
@pytest.mark.parametrize("value", [0, 1])
def test_a_program_of_one_constant_is_refused(element_type: str, value: int) -> None:
    spec = TensorSpec(VECTOR, element_type)
    with pytest.raises(RuntimeError, match=r"cannot be verified: output 0 is (not to be told from zeros|the same)"):
        workspace(_write(value), (spec,), (spec,))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_program_without_a_finite_number_is_refused(value: float) -> None:
    specs = TensorSpec(VECTOR, "f32"), TensorSpec(VECTOR, "i32")

    def partly(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = value
        outputs[1][...] = inputs[1]

    with pytest.raises(RuntimeError, match="cannot be verified: output 0 has no finite element"):
        workspace(partly, specs, specs)


def test_results_that_differ_by_less_than_they_are_rounded_are_refused() -> None:
    spec = TensorSpec(VECTOR, "f32")

    def flat(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = 1e-3 * (1 + 1e-6 * np.tanh(inputs[0]))

    with pytest.raises(RuntimeError, match="output 0 is the same, whatever"):
        workspace(flat, (spec,), (spec,))


def test_small_results_are_as_good_as_large_ones() -> None:
    """A random MobileNet-V2 returns 3e-9 everywhere."""
    spec = TensorSpec(VECTOR, "f32")

    def small(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = 3e-9 * inputs[0]

    made, device = workspace(small, (spec,), (spec,), zeros=_write(0), other=_write(1e-12))
    for name in ("zeros", "other"):
        wrong = device.load(Program(b"", name, (spec,), (spec,), False))
        assert all(made.verify(wrong, check) for check in range(2))


def test_one_output_may_be_constant_beside_others() -> None:
    spec = TensorSpec(VECTOR, "f32")

    def both(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = inputs[0]
        outputs[1][...] = 0

    made, _ = workspace(both, (spec,), (spec, spec))
    assert made.telling.constant == ("output 1 is not to be told from zeros",)


def _derived(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    values = np.cumsum(inputs[0].astype(np.int64)) * 37 % 101 - 50
    outputs[0][...] = values % 2 == 0 if outputs[0].dtype.kind == "b" else values


@pytest.mark.parametrize("element_type", DTYPES)
def test_right_numbers_that_timing_left_in_the_pool_do_not_pass(element_type: str) -> None:
    """A program that writes nothing returns a buffer in which its own timed calls left the right result."""
    taken, spec = TensorSpec(VECTOR, "i32"), TensorSpec(VECTOR, element_type)
    made, device = workspace(_derived, (taken,), (spec,), nothing=lambda inputs, outputs: None)
    right, nothing = (Program(b"", name, (taken,), (spec,), False) for name in ("main", "nothing"))
    timed = [device.buffer(array, taken) for array in made.timed_inputs()]
    for check in (*range(len(made.checks)), 0):
        device.run(right, timed, [])
        complaint = made.verify(device.load(nothing), check)
        assert complaint or check == 1


def test_a_rule_of_one_check_looks_for_differences_within_a_result() -> None:
    spec, device = TensorSpec(VECTOR, "f32"), ArrayDevice({"main": _write(1.5)})
    checks = (Check(InputKind.RANDOM, 1, tolerance=1e-5),)
    with pytest.raises(RuntimeError, match="the same, whatever"):
        Workspace(device, Program(b"", "main", (spec,), (spec,), True), checks)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "value", "reason"),
    [
        ((4,), np.arange(4.0), ""),
        ((4,), np.full(4, 3.0), "output 0 is the same, whatever the inputs"),
        ((), np.array(3.0), ""),
        ((), np.array(0.0), "output 0 is not to be told from zeros"),
    ],
)
def test_with_one_check_a_result_has_to_differ_in_itself_unless_it_is_a_single_number(
    shape: tuple[int, ...], value: Array, reason: str
) -> None:
    spec = TensorSpec(shape, "f32")
    check = next(check for check in checks_for_model((spec,)) if check.kind == InputKind.RANDOM)
    found = [[value.astype(np.float32)]]
    assert why_unverifiable(found, telling([spec], [check], found).constant) == reason


SAYING, OTHER = np.arange(1.0, 5.0), np.arange(2.0, 6.0)
ZEROS, NANS = np.zeros(4), np.full(4, np.nan)


@pytest.mark.parametrize(
    ("found", "checks", "constant"),
    [
        ([[SAYING], [OTHER]], (0,), ()),
        ([[ZEROS], [SAYING]], (1,), ()),
        ([[NANS], [SAYING]], (1,), ()),
        ([[SAYING, ZEROS], [OTHER, SAYING]], (0, 1), ()),
        ([[ZEROS, SAYING], [ZEROS, OTHER]], (0,), ("output 0 is not to be told from zeros",)),
        ([[SAYING, SAYING], [SAYING, OTHER]], (0,), ("output 0 is the same, whatever the inputs",)),
        ([[SAYING], [SAYING], [OTHER]], (1,), ()),
        ([[np.ones(1)], [np.full(1, 2.0)]], (0,), ()),
        ([[np.zeros(0), ZEROS], [np.zeros(0), SAYING]], (1,), ()),
    ],
)
def test_the_checks_that_are_repeated_say_something_of_every_output(
    found: list[list[Array]], checks: tuple[int, ...], constant: tuple[str, ...]
) -> None:
    references = [[array.astype(np.float32) for array in arrays] for arrays in found]
    outputs = [TensorSpec(array.shape, "f32") for array in references[0]]
    made = tuple(Check(InputKind.RANDOM, seed, tolerance=1e-5) for seed in range(len(found)))
    told = telling(outputs, made, references)
    assert (told.checks, told.constant) == (checks, constant)


def test_a_program_that_returns_nothing_or_no_number_is_refused() -> None:
    assert why_unverifiable([[], []], ()) == "it returns nothing"
    nothing_finite = [[NANS], [NANS]]
    assert why_unverifiable(nothing_finite, ()) == "output 0 has no finite element, whatever the inputs"


STEEP = 1e5
"""Factor in the argument of a sine: a rounding of the argument moves the result by a hundredth."""


def steep(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Compute an ill-conditioned function."""
    outputs[0][...] = np.sin(np.float32(0.03 * STEEP) * inputs[0])


def steep_in_another_order(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Compute the same with other roundings."""
    outputs[0][...] = np.sin(np.float32(0.03) * (np.float32(STEEP) * inputs[0]))


def steep_and_wrong(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Compute the same with one wrong element."""
    steep(inputs, outputs)
    outputs[0][3] += 0.02


def steep_and_lost(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Compute the same with one element that is no number."""
    steep(inputs, outputs)
    outputs[0][3] = np.nan


def test_a_result_that_rounding_of_the_inputs_moves_as_far_is_right_and_others_are_wrong() -> None:
    spec = TensorSpec(VECTOR, "f32")
    others = {"other": steep_in_another_order, "wrong": steep_and_wrong, "lost": steep_and_lost}
    made, device = workspace(steep, (spec,), (spec,), **others)
    random = next(i for i, check in enumerate(made.checks) if check.kind == InputKind.RANDOM)
    verdicts = {}
    for entry in ("main", *others):
        loaded = device.load(Program(b"", entry, (spec,), (spec,), writes_into_arguments=False))
        verdicts[entry] = made.verify(loaded, random)
    assert verdicts["main"] is verdicts["other"] is None
    assert "1 of 100 elements are too far off" in (verdicts["wrong"] or "")
    assert "1 of 100 elements are NaN or infinite" in (verdicts["lost"] or "")


def test_a_result_of_a_well_conditioned_program_has_to_be_within_the_tolerance() -> None:
    spec = TensorSpec(VECTOR, "f32")

    def double(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = 2 * inputs[0]

    def nearly(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = 2 * inputs[0] * np.float32(1 + 1e-3)

    made, device = workspace(double, (spec,), (spec,), nearly=nearly)
    loaded = device.load(Program(b"", "nearly", (spec,), (spec,), writes_into_arguments=False))
    assert "too far off" in (made.verify(loaded, 0) or "")


def test_results_that_hardly_depend_on_small_inputs_are_told_by_larger_ones() -> None:
    def bias(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = 5 + 1e-6 * inputs[0]

    spec = TensorSpec(VECTOR, "f32")
    made, _ = workspace(bias, (spec,), (spec,))
    assert [check.scale for check in made.checks] == [1.0, 1000.0]
    assert made.telling.constant == ()


def test_a_class_that_two_draws_share_is_told_by_a_third() -> None:
    def classify(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        outputs[0][...] = 1 + (0.9 < inputs[0][0] < 0.999)

    spec, label = TensorSpec(VECTOR, "f32"), TensorSpec((), "i64")
    made, _ = workspace(classify, (spec,), (label,))
    assert made.telling.constant == ()
