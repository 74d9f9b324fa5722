"""Public functions that can be neither run nor checked are left out, with a reason, and the others are tuned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import iree_cases as cases
import pytest
from rewriting import write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.errors import Failure, FailureClass, UserError
from mlir_sched.outcome import Verdict
from mlir_sched.program.checking.usable_functions import with_usable_functions
from mlir_sched.program.variants.choosing import build_variants
from mlir_sched.program.variants.compile_policy import CompilePolicy
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.program.whole_program import CompiledModel, measure_programs
from mlir_sched.runner import RacingOptions, Runner, RunnerOptions
from mlir_sched.runner.program import Program
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract

pytestmark = pytest.mark.promise

CONSTANT = """
func.func @version() -> tensor<4xi32> {
  %c = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  return %c : tensor<4xi32>
}
"""
SCALES = """
func.func @scales(%a: tensor<16xf8E8M0FNU>) -> tensor<16xf32> {
  %e = tensor.empty() : tensor<16xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : tensor<16xf8E8M0FNU>) outs(%e : tensor<16xf32>) {
  ^bb0(%x: f8E8M0FNU, %o: f32):
    %c = arith.extf %x : f8E8M0FNU to f32
    linalg.yield %c : f32
  } -> tensor<16xf32>
  return %r : tensor<16xf32>
}
"""
NOT_A_NUMBER = """
func.func @undefined(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %z = arith.constant dense<0.0> : tensor<8x8xf32>
  %n = arith.mulf %a, %z : tensor<8x8xf32>
  %r = arith.divf %n, %n : tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
"""
QUICK = RunnerOptions(racing=RacingOptions(budget_s=0.02, min_pairs=2))


class DefaultOnly(CompilePolicy):
    """A choice of no variant besides the default."""

    def should_compile(self, name: str) -> bool:
        return False


def test_a_function_with_tensors_of_an_unknown_type_is_left_out_with_its_dispatches(tmp_path: Path) -> None:
    model = extract(write(tmp_path, cases.MATMUL + SCALES), cases.TARGET)
    assert [entry.name for entry in model.entries] == ["mm"]
    assert model.not_run == {"scales": "it takes f8E8M0FNU, of which no values can be made or compared"}
    assert len(model.tasks) == 1


def test_a_model_keeps_its_functions_when_none_would_be_left(tmp_path: Path) -> None:
    model = extract(write(tmp_path, SCALES), cases.TARGET)
    assert [entry.name for entry in model.entries] == ["scales"]
    assert model.not_run == {}


@pytest.mark.landing
def test_functions_to_leave_out_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, cases.MATMUL + NOT_A_NUMBER)
    assert [len(extract(path, cases.TARGET, not_run=named).tasks) for named in ({}, {"undefined": "asked"})] == [2, 1]


@pytest.mark.landing
@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        (CONSTANT, "version", "its numbers cannot be verified: output 0 is the same, whatever the inputs"),
        (
            NOT_A_NUMBER,
            "undefined",
            "its numbers cannot be verified: output 0 has no finite element, whatever the inputs",
        ),
    ],
)
def test_a_function_whose_numbers_cannot_be_verified_does_not_refuse_the_program(
    text: str, name: str, why: str, tmp_path: Path, here: Target
) -> None:
    path = write(tmp_path, cases.MATMUL + text)
    with MeasuredPrograms.open(Source(path, here), QUICK) as times:
        (built,) = build_variants(times, DefaultOnly()).built
    assert [entry.name for entry in built.model.entries] == ["mm"]
    assert built.model.not_run == {name: f"{why}, and no result of its dispatches tells more"}
    assert len(built.model.tasks) == 1
    assert built.timing is not None


@pytest.mark.landing
def test_a_program_with_no_other_function_is_refused(tmp_path: Path, here: Target) -> None:
    path = write(tmp_path, NOT_A_NUMBER + NOT_A_NUMBER.replace("undefined", "neither"))
    with (
        MeasuredPrograms.open(Source(path, here), QUICK) as times,
        pytest.raises(UserError, match=r"nothing is tuned, as @undefined: its numbers cannot"),
    ):
        build_variants(times, DefaultOnly())


SUM = """
func.func @sum(%a: tensor<64x32xf32>) -> tensor<64x32xf32> {
  %r = arith.addf %a, %a : tensor<64x32xf32>
  return %r : tensor<64x32xf32>
}
"""


def test_a_program_that_is_wrong_in_its_second_function_is_wrong(tmp_path: Path) -> None:
    text = cases.MATMUL + SUM
    model = extract(write(tmp_path, text), cases.TARGET)
    assert [entry.name for entry in model.entries] == ["mm", "sum"]
    right = CompiledModel(compile_to_bytes(tmp_path / "model.mlir", cases.FLAGS))
    wrong = CompiledModel(compile_to_bytes(write(tmp_path, text.replace("addf %a, %a", "mulf %a, %a")), cases.FLAGS))
    with Runner(QUICK) as runner:
        untuned, (same, other) = measure_programs(runner, model, right, [right, wrong])
        alone, _ = measure_programs(runner, replace(model, entries=model.entries[:1]), right, [])
    assert same.verdict is Verdict.RIGHT
    assert other.failure is not None
    assert (other.failure.kind, other.timing) == (FailureClass.WRONG_RESULT, None)
    assert untuned.median_s > alone.median_s, "the time is that of both functions"


class RacingRunner:
    """A runner for which one function differs from itself when it runs again."""

    def __init__(self, racing: str) -> None:
        self.racing = racing

    def repeat(self, program: Program, _: object) -> Failure | None:
        failure = Failure(FailureClass.WRONG_RESULT, "on 2 threads: output 0: 0.0 instead of -5.4")
        return failure if program.entry == self.racing else None


def test_a_program_that_does_not_repeat_its_results_is_refused_before_the_search(tmp_path: Path) -> None:
    model = extract(write(tmp_path, cases.MATMUL), cases.TARGET)
    with_usable_functions(RacingRunner("other"), model, CompiledModel(b""))  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"@mm does not repeat its results \(wrong_result: on 2 threads: output 0"):
        with_usable_functions(RacingRunner("mm"), model, CompiledModel(b""))  # type: ignore[arg-type]


def test_a_function_that_does_not_repeat_its_results_is_left_out_beside_others(tmp_path: Path) -> None:
    model = extract(write(tmp_path, cases.MATMUL + cases.ACCUMULATE), cases.TARGET)
    kept = with_usable_functions(RacingRunner("acc"), model, CompiledModel(b""))  # type: ignore[arg-type]
    assert [entry.name for entry in kept.entries] == ["mm"]
    assert "does not repeat its results" in kept.not_run["acc"]
