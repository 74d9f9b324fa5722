"""Layers that differ in a number are one task, which takes the number."""

from __future__ import annotations

from pathlib import Path

import iree.runtime as rt
import iree_cases as cases
import numpy as np
import pytest
from scaled_layers import scaled_layers

from mlir_sched.compiler import CompilerPool
from mlir_sched.compiler.chain import THREADS_LENGTH
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import Check, InputKind
from mlir_sched.runner.checks.inputs import make_inputs
from mlir_sched.runner.program import program_of_task
from mlir_sched.runner.worker.device import LocalDevice
from mlir_sched.targets.target import LOCAL_SYNC
from mlir_sched.tasks import Model, extract

pytestmark = pytest.mark.promise

NUMBER = TensorSpec((), "f32", by_value=True)


def model_of(folder: Path, scales: tuple[float, ...]) -> Model:
    path = folder / "model.mlir"
    path.write_text(scaled_layers(scales))
    return extract(path, cases.TARGET, ("--iree-flow-inline-constants-max-byte-length=0",))


def test_layers_that_differ_in_a_number_are_one_task_that_takes_it(tmp_path: Path) -> None:
    (task,) = model_of(tmp_path, (0.5, 0.25, 0.5)).tasks
    assert task.weight == 3
    assert [spec for spec in task.inputs if spec.by_value] == [NUMBER]
    assert task.inputs[-1] == NUMBER
    assert task.numbers == ((0.5,), (0.25,))
    assert task.dispatch is not None


def test_a_number_on_which_all_layers_agree_is_part_of_the_code(tmp_path: Path) -> None:
    (task,) = model_of(tmp_path, (0.5, 0.5)).tasks
    assert (task.weight, task.numbers) == (2, ())
    assert not any(spec.by_value for spec in task.inputs)


def test_measurements_hold_for_the_numbers_that_they_were_checked_with(tmp_path: Path) -> None:
    keys = {model_of(tmp_path, (0.5, scale)).tasks[0].key for scale in (0.25, 0.125, 0.25)}
    assert len(keys) == 2


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("number", [0.5, 0.25])
def test_the_program_of_the_task_scales_by_the_number_that_it_is_given(tmp_path: Path, number: float) -> None:
    (task,) = model_of(tmp_path, (0.5, 0.25)).tasks
    with CompilerPool(task.flags, workers=1, chain_length=THREADS_LENGTH) as pool:
        ((_, compiled),) = pool.compile(task.source, [None])
    assert compiled.vmfb is not None, compiled.failure
    device = LocalDevice(rt.VmInstance(), LOCAL_SYNC)
    loaded = device.load(program_of_task(task, compiled.vmfb))
    assert loaded.has_chain
    arrays = make_inputs(task.inputs, Check(InputKind.EXACT, 1, numbers=(number,)))
    buffers = [device.buffer(array, spec) for array, spec in zip(arrays, task.inputs, strict=True)]
    (spec,) = task.outputs
    result = device.buffer(np.zeros(spec.shape, np.float32), spec)
    loaded.call(buffers, [result])
    np.testing.assert_array_equal(device.read(result, spec), arrays[0] @ arrays[1] * np.float32(number))
