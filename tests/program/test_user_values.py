"""Whole programs are checked with the inputs that a user gives, and judged by the reference that belongs to them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import iree_cases as cases
import numpy as np
import pytest
from rewriting import write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.errors import UserError
from mlir_sched.program.checking.user_values import against_reference, untuned_wrong_notes, with_values
from mlir_sched.program.whole_program import CompiledModel, measure_programs
from mlir_sched.runner import RacingOptions, Runner, RunnerOptions, RunResult
from mlir_sched.tasks import Model, extract
from mlir_sched.tensors.given_values import Values, function_values
from mlir_sched.tensors.values import digests_of

pytestmark = pytest.mark.promise

QUICK = RunnerOptions(racing=RacingOptions(budget_s=0.02, min_pairs=2))
DOUBLE = """
func.func @double(%a: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %limit = arith.constant dense<50.0> : tensor<64x32xf32>
  %low = arith.minimumf %a, %limit : tensor<64x32xf32>
  %r = arith.addf %a, %low : tensor<64x32xf32>
  return %r : tensor<64x32xf32>
}
"""
UNLIMITED = DOUBLE.replace("addf %a, %low", "addf %a, %a")
LARGE = np.arange(80, 80 + 64 * 32, dtype=np.float32).reshape(64, 32)


def judged(folder: Path, untuned: str, other: str, inputs: Values, reference: Values = ()) -> tuple[Model, RunResult]:
    """Return a program's model, and what becomes of another program beside it with the given values."""
    right, wrong = (CompiledModel(compile_to_bytes(write(folder, text), cases.FLAGS)) for text in (untuned, other))
    model = with_values(extract(write(folder, untuned), cases.TARGET), function_values(inputs, reference))
    with Runner(QUICK) as runner:
        model = against_reference(runner, model, right)
        _, (result,) = measure_programs(runner, model, right, [wrong])
    return model, result


def test_a_program_that_is_wrong_only_with_the_given_inputs_is_refused(tmp_path: Path) -> None:
    _, without = judged(tmp_path, DOUBLE, UNLIMITED, ())
    _, found = judged(tmp_path, DOUBLE, UNLIMITED, [LARGE])
    assert without.failure is None, "drawn inputs do not reach the limit"
    assert found.failure is not None
    assert "given inputs: output 0: 2048 of 2048 elements" in found.failure.message


@pytest.mark.landing
def test_untuned_code_that_agrees_with_the_reference_is_judged_by_all_checks(tmp_path: Path) -> None:
    model, result = judged(tmp_path, DOUBLE, DOUBLE, [LARGE], [LARGE + 50])
    assert (dict(model.untuned_wrong), untuned_wrong_notes(model)) == ({}, [])
    assert result.failure is None


@pytest.mark.landing
def test_untuned_code_that_differs_from_the_reference_is_named_and_no_reference_itself(tmp_path: Path) -> None:
    reference = [2 * LARGE]
    model, right = judged(tmp_path, DOUBLE, UNLIMITED, [LARGE], reference)
    _, same = judged(tmp_path, DOUBLE, DOUBLE, [LARGE], reference)
    (note,) = untuned_wrong_notes(model)
    assert note.startswith("the untuned code is wrong: given inputs: output 0: 2048 of 2048 elements are too far off")
    assert right.failure is None, "only the given reference judges"
    assert same.failure is not None


def test_inputs_of_one_of_several_functions_are_given_by_its_name(tmp_path: Path) -> None:
    other = cases.MATMUL + DOUBLE
    model = with_values(extract(write(tmp_path, other), cases.TARGET), function_values({"double": [LARGE]}))
    assert model.given("mm") is None
    assert model.given("double") is not None


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"triple": [LARGE]}, "has no function @triple; its functions are @mm, @double"),
        ([LARGE], "has several functions; name one"),
        ({"double": [LARGE.T]}, "number 0: an array is 32x64xf32, but the program has 64x32xf32"),
    ],
)
def test_values_without_a_place_in_the_program_are_refused(inputs: Values, expected: str, tmp_path: Path) -> None:
    model = extract(write(tmp_path, cases.MATMUL + DOUBLE), cases.TARGET)
    with pytest.raises(UserError, match=expected):
        with_values(model, function_values(inputs))


def test_a_summary_keeps_digests_that_tell_values_apart(tmp_path: Path) -> None:
    model = extract(write(tmp_path, DOUBLE), cases.TARGET)
    given = [function_values(inputs, [LARGE]) for inputs in ([LARGE], [LARGE + 1])]
    first, second = (digests_of(with_values(model, values).values) for values in given)
    assert json.loads(json.dumps(first)) == first != second
    assert list(first) == ["double"]
    assert first["double"]["inputs"] == first["double"]["reference"]


def test_a_function_whose_results_depend_on_the_calls_before_has_no_reference(tmp_path: Path) -> None:
    model = extract(write(tmp_path, DOUBLE), cases.TARGET)
    model = replace(model, entries=(replace(model.entries[0], reads=("rows",)),))
    assert with_values(model, function_values([LARGE])).given("double") is not None
    with pytest.raises(UserError, match=r"results depend on the calls before \(state: @rows\); leave out"):
        with_values(model, function_values([LARGE], [LARGE]))
