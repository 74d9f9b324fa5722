"""The values that a program passes to its dispatches are recorded, and scripts are checked with them."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from array_device import ArrayDevice, Function
from plans import flagged
from rewriting import write

from mlir_sched.payload import TensorSpec
from mlir_sched.program.building import build_variant
from mlir_sched.program.checking.captured_values import MOST_SHARE, ValueRecorder
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.whole_program import calls_of
from mlir_sched.runner.checks.captured import read_values, write_values
from mlir_sched.runner.checks.check import Check, InputKind, Integers
from mlir_sched.runner.checks.inputs import make_inputs
from mlir_sched.runner.checks.numeric_checks import checks_for_task
from mlir_sched.runner.program import Program
from mlir_sched.runner.worker.workspace import Workspace
from mlir_sched.targets.target import Target
from mlir_sched.tensors.packing import to_words

SCALE = 1000.0
NETWORK = f"""
func.func @main(%a: tensor<16x24xf32>, %b: tensor<24x32xf32>, %c: tensor<32x8xf32>) -> tensor<16x8xf32> {{
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant {SCALE} : f32
  %e1 = tensor.empty() : tensor<16x32xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %m = linalg.matmul ins(%a, %b : tensor<16x24xf32>, tensor<24x32xf32>) outs(%f1 : tensor<16x32xf32>)
    -> tensor<16x32xf32>
  %r = linalg.map ins(%m : tensor<16x32xf32>) outs(%e1 : tensor<16x32xf32>) (%x: f32, %o: f32) {{
    %y = arith.mulf %x, %scale : f32
    %z = arith.maximumf %y, %zero : f32
    linalg.yield %z : f32
  }}
  %e2 = tensor.empty() : tensor<16x8xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<16x8xf32>) -> tensor<16x8xf32>
  %n = linalg.matmul ins(%r, %c : tensor<16x32xf32>, tensor<32x8xf32>) outs(%f2 : tensor<16x8xf32>)
    -> tensor<16x8xf32>
  return %n : tensor<16x8xf32>
}}
"""
ROW = TensorSpec((64,), "f32")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, here: Target) -> BuiltVariant:
    model = write(tmp_path_factory.mktemp("captured"), NETWORK)
    return build_variant(model, here, flagged("default"), ())


@pytest.mark.promise
def test_a_dispatch_is_checked_with_what_the_program_passes_to_it(built: BuiltVariant, here: Target) -> None:
    first, second = ValueRecorder.of(here, math.inf).with_values(built).model.tasks
    ((program, check),) = calls_of(built.model)
    a, b, c = make_inputs(program.inputs, check)
    for task, expected in ((first, (a, b)), (second, (np.maximum(SCALE * (a @ b), 0), c))):
        *_, captured = checks_for_task(task)
        assert captured.kind is InputKind.CAPTURED
        for found, right in zip(make_inputs(task.inputs, captured), expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-2)


@pytest.mark.promise
def test_recording_that_would_take_too_much_of_a_run_is_left_out_and_told(built: BuiltVariant, here: Target) -> None:
    slow = replace(built, build_s=61 * MOST_SHARE)
    found = ValueRecorder.of(here, 60.0).with_values(slow).model
    assert not any(task.captured for task in found.tasks)
    assert any("checked with drawn values alone" in note for note in found.notes)


@pytest.mark.promise
def test_variants_share_the_seconds_that_recording_may_take(built: BuiltVariant, here: Target) -> None:
    recorder = ValueRecorder(here, left_s := 60.0)
    begun_s = time.monotonic()
    first = recorder.with_values(built).model
    took_s = time.monotonic() - begun_s
    second = recorder.with_values(replace(built, build_s=left_s - took_s / 2)).model
    assert all(task.captured for task in first.tasks)
    assert not any(task.captured for task in second.tasks)
    assert any("checked with drawn values alone" in note for note in second.notes)


@pytest.mark.promise
def test_recording_ends_when_its_seconds_are_spent(built: BuiltVariant, here: Target) -> None:
    found = ValueRecorder(here, 1e-3).with_values(replace(built, build_s=0.0)).model
    assert not any(task.captured for task in found.tasks)
    assert any("stopped after 0.001 s" in note for note in found.notes), found.notes


@pytest.mark.promise
def test_a_program_that_cannot_be_recorded_is_tuned_without_and_the_reason_is_told(
    built: BuiltVariant, here: Target, tmp_path: Path
) -> None:
    gone = replace(built, model=replace(built.model, path=str(tmp_path / "gone.mlir")))
    found = ValueRecorder.of(here, math.inf).with_values(gone).model
    assert not any(task.captured for task in found.tasks)
    assert any("to record" in note for note in found.notes), found.notes


def clamped_at(limit: float) -> Function:
    def compute(inputs: object, outputs: object) -> None:
        np.copyto(outputs[0], np.clip(inputs[0], 0, limit))  # type: ignore[index]

    return compute


def refuses(checks: tuple[Check, ...]) -> bool:
    """Say whether checks refuse a program that is wrong for values above 100."""
    device = ArrayDevice({"right": clamped_at(math.inf), "wrong": clamped_at(100.0)})
    right, wrong = (Program(b"", entry, (ROW,), (ROW,), writes_into_arguments=True) for entry in ("right", "wrong"))
    workspace = Workspace(device, right, checks)  # type: ignore[arg-type]
    loaded = device.load(wrong)
    return any(workspace.verify(loaded, index) for index in range(len(workspace.checks)))


def test_a_fault_that_only_the_programs_own_values_show_is_refused(tmp_path: Path) -> None:
    drawn = Check(InputKind.EXACT, 1), Check(InputKind.RANDOM, 2, tolerance=1e-5)
    captured = captured_in(tmp_path, np.linspace(0, 500, 64, dtype=np.float32))
    assert not refuses(drawn)
    assert refuses((*drawn, captured))


def test_random_floats_have_the_magnitude_of_the_programs_own(tmp_path: Path) -> None:
    captured = captured_in(tmp_path, np.linspace(0, 500, 64, dtype=np.float32))
    drawn = replace(captured, kind=InputKind.RANDOM)
    assert not refuses((replace(drawn, captured=""),))
    assert refuses((drawn,))


@pytest.mark.parametrize("value", [0.0, 7.0, np.nan, np.inf, -3e38, 1e-30])
def test_values_that_do_not_vary_or_hide_others_leave_random_floats_as_they_are(tmp_path: Path, value: float) -> None:
    values = np.full(64, value, np.float32)
    values[0] = 0.0 if abs(value) > 1e30 else value
    drawn = replace(captured_in(tmp_path, values), kind=InputKind.RANDOM)
    (found,), (plain,) = (make_inputs((ROW,), check) for check in (drawn, replace(drawn, captured="")))
    np.testing.assert_array_equal(found, plain)


def test_random_integers_have_the_range_of_the_programs_own(tmp_path: Path) -> None:
    spec = TensorSpec((64,), "i32")
    write_values(tmp_path / "values.npz", [np.arange(-70_000, 10_000, 1250, dtype=np.int32).view(np.uint8)])
    check = Check(InputKind.RANDOM, 2, integers=Integers.WHOLE, captured=str(tmp_path / "values.npz"))
    (found,) = make_inputs((spec,), check)
    assert -70_000 <= found.min() < -1000
    assert 1000 < found.max() <= 10_000


@pytest.mark.parametrize("value", [0.0, np.nan, 1e-38], ids=["zeros", "not a number", "below all tolerances"])
def test_values_that_say_nothing_give_way_to_drawn_ones(tmp_path: Path, value: float) -> None:
    captured = captured_in(tmp_path, np.full(64, value, np.float32))
    device = ArrayDevice({"right": clamped_at(math.inf)})
    program = Program(b"", "right", (ROW,), (ROW,), writes_into_arguments=True)
    workspace = Workspace(device, program, (captured,))  # type: ignore[arg-type]
    assert [check.kind for check in workspace.checks] == [InputKind.RANDOM]


@pytest.mark.parametrize("spec", [TensorSpec((3, 5), "i4"), TensorSpec((9,), "i2"), TensorSpec((2, 3), "f16")])
def test_recorded_bytes_are_elements_again_packed_ones_too(spec: TensorSpec, tmp_path: Path) -> None:
    (elements,) = make_inputs((spec,), Check(InputKind.EXACT, 1))
    write_values(tmp_path / "values.npz", [to_words(elements, spec).reshape(-1).view(np.uint8)])
    (found,) = read_values(tmp_path / "values.npz", [spec])
    np.testing.assert_array_equal(found, elements)


def captured_in(folder: Path, values: np.ndarray[tuple[int], np.dtype[np.float32]]) -> Check:
    """Return a check with values of one input that were recorded in a program."""
    file = folder / "values.npz"
    write_values(file, [values.view(np.uint8)])
    np.testing.assert_array_equal(read_values(file, [ROW])[0], values)
    return Check(InputKind.CAPTURED, 2, tolerance=1e-5, captured=str(file))
