"""Functions whose calls depend on each other are checked by sequences of calls, each from a fresh context."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import iree_cases as cases
import pytest
from fixed_targets import FIXED_VULKAN
from rewriting import write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.errors import FailureClass, UserError
from mlir_sched.outcome import Verdict
from mlir_sched.program.checking.stateful_programs import require_resettable
from mlir_sched.program.whole_program import CompiledModel, checks_of, measure_programs
from mlir_sched.runner import RacingOptions, Runner, RunnerOptions, RunResult
from mlir_sched.tasks import extract

pytestmark = pytest.mark.promise

QUICK = RunnerOptions(racing=RacingOptions(budget_s=0.02, min_pairs=2))
PREVIOUS = """
util.global private mutable @state = dense<0.25> : tensor<32x32xf32>
func.func @main(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %old = util.global.load @state : tensor<32x32xf32>
  %r = arith.mulf %old, %b : tensor<32x32xf32>
  %half = arith.constant dense<0.5> : tensor<32x32xf32>
  %kept = arith.mulf %a, %half : tensor<32x32xf32>
  util.global.store %kept, @state : tensor<32x32xf32>
  return %r : tensor<32x32xf32>
}
"""
"""Returns what the call before stored, times b."""
CACHE = """
module @memory {
  util.global private mutable @count = dense<0> : tensor<i32>
  util.global private mutable @rows = dense<0.0> : tensor<16x32xf32>
  func.func @append(%x: tensor<1x32xf32>) -> tensor<i32> {
    %n = util.global.load @count : tensor<i32>
    %i = tensor.extract %n[] : tensor<i32>
    %c15 = arith.constant 15 : i32
    %j = arith.andi %i, %c15 : i32
    %at = arith.index_cast %j : i32 to index
    %rows = util.global.load @rows : tensor<16x32xf32>
    %new = tensor.insert_slice %x into %rows[%at, 0] [1, 32] [1, 1] : tensor<1x32xf32> into tensor<16x32xf32>
    util.global.store %new, @rows : tensor<16x32xf32>
    %c1 = arith.constant 1 : i32
    %m = arith.addi %i, %c1 : i32
    %mt = tensor.from_elements %m : tensor<i32>
    util.global.store %mt, @count : tensor<i32>
    return %mt : tensor<i32>
  }
  func.func @attend(%q: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %rows = util.global.load @rows : tensor<16x32xf32>
    %r = arith.mulf %rows, %q : tensor<16x32xf32>
    return %r : tensor<16x32xf32>
  }
}
"""
FIRST_ROW = """
    %z = arith.constant dense<0.0> : tensor<16x32xf32>
    %row = tensor.extract_slice %rows[0, 0] [1, 32] [1, 1] : tensor<16x32xf32> to tensor<1x32xf32>
    %first = tensor.insert_slice %row into %z[0, 0] [1, 32] [1, 1] : tensor<1x32xf32> into tensor<16x32xf32>
    %r = arith.mulf %first, %q"""
"""Lines of @attend that read no other row."""


def beside(folder: Path, untuned: str, other: str) -> RunResult:
    """Return what becomes of another program that is judged by the results of an untuned one."""
    right, judged = (CompiledModel(compile_to_bytes(write(folder, text), cases.FLAGS)) for text in (untuned, other))
    model = extract(write(folder, untuned), cases.TARGET)
    with Runner(QUICK) as runner:
        return measure_programs(runner, model, right, [judged])[1][0]


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("store %kept", "store %a"),  # shows in the call after
        ("dense<0.25>", "dense<1.0>"),  # shows in the first call
        ("%r = arith.mulf %old, %b", "%r = arith.addf %old, %b"),
    ],
)
def test_a_program_that_leaves_another_state_is_wrong(old: str, new: str, tmp_path: Path) -> None:
    found = beside(tmp_path, PREVIOUS, PREVIOUS.replace(old, new))
    assert found.failure is not None
    assert found.failure.kind == FailureClass.WRONG_RESULT


def test_a_program_that_changes_its_state_is_checked_and_timed(tmp_path: Path) -> None:
    found = beside(tmp_path, PREVIOUS, PREVIOUS)
    assert found.verdict == Verdict.RIGHT
    assert found.constant_outputs == ()
    assert found.timing is not None


@pytest.mark.landing
def test_a_function_that_reads_state_is_checked_in_the_state_that_the_others_leave(tmp_path: Path) -> None:
    found = beside(tmp_path, CACHE, CACHE.replace("    %r = arith.mulf %rows, %q", FIRST_ROW))
    assert found.failure is not None, "only the second row that @append writes differs"
    assert "inputs after @append, @append: output 0" in found.failure.message


def test_checks_follow_two_sequences_of_calls(tmp_path: Path) -> None:
    model = extract(write(tmp_path, PREVIOUS), cases.TARGET)
    (main,) = model.entries
    assert [check.before for check in checks_of(model, main)] == [(), (), ("main",), ("main",)]
    reset = replace(main, name="reset")
    model = replace(model, stateful=(main, reset, replace(main, name="append")))
    first, second = dict.fromkeys(check.before for check in checks_of(model, replace(reset, writes=())))
    assert first == ("main", "main", "append", "append")
    assert second == tuple(reversed(first))


def test_devices_reset_no_state(tmp_path: Path) -> None:
    model = extract(write(tmp_path, PREVIOUS), cases.TARGET)
    require_resettable(model, cases.TARGET)
    with pytest.raises(UserError, match=r"nothing is tuned, as @main changes the program's state \(@state\)"):
        require_resettable(model, replace(cases.TARGET, driver=FIXED_VULKAN.driver))
