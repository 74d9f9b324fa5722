"""Chains: several dispatches in one call, each with constants of its own."""

from __future__ import annotations

from pathlib import Path

import iree.runtime as rt
import numpy as np
import pytest
from iree.compiler.tools import compile_str
from iree_cases import FLAGS

from mlir_sched.compiler import CompilerPool
from mlir_sched.compiler.chain import DEVICE_LENGTH, THREADS_LENGTH, stride_bytes
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.program import Program, program_of_task
from mlir_sched.runner.worker.device import LoadedProgram, LocalDevice
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import LOCAL_SYNC
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task

pytestmark = pytest.mark.promise

ROWS, COLUMNS = 3, 5
VECTOR, MATRIX = TensorSpec((COLUMNS,), "f32"), TensorSpec((ROWS, COLUMNS), "f32")
SUM = """
func.func @main(%a: tensor<3x5xf32>, %b: tensor<5xf32>) -> tensor<3x5xf32> {
  %empty = tensor.empty() : tensor<3x5xf32>
  %sum = linalg.generic {indexing_maps = [
      affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<3x5xf32>, tensor<5xf32>) outs(%empty : tensor<3x5xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<3x5xf32>
  return %sum : tensor<3x5xf32>
}
"""
IN_PLACE = """
func.func @main(%a: tensor<3x5xf32>, %b: tensor<5x5xf32>, %c: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %sum = linalg.matmul ins(%a, %b : tensor<3x5xf32>, tensor<5x5xf32>) outs(%c : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %sum : tensor<3x5xf32>
}
"""


@pytest.fixture(scope="module")
def device() -> LocalDevice:
    return LocalDevice(rt.VmInstance(), LOCAL_SYNC)


def loaded(
    task: Task, constants: tuple[int, ...], device: LocalDevice, *, length: int = THREADS_LENGTH
) -> LoadedProgram:
    with CompilerPool(task.flags, workers=1, chain_length=length) as pool:
        ((_, compiled),) = pool.compile(task.source, [None], constants)
    assert compiled.vmfb is not None, compiled.failure
    return device.load(program_of_task(task, compiled.vmfb))


def task_of(text: str, folder: Path) -> Task:
    (folder / "model.mlir").write_text(text)
    (task,) = extract(folder / "model.mlir", detect_target("llvm-cpu", 1)).tasks
    return task


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("length", [THREADS_LENGTH, DEVICE_LENGTH])
@pytest.mark.parametrize("constants", [(), (1,), (0, 1)])
def test_the_last_dispatch_reads_the_last_copy_of_every_constant(
    constants: tuple[int, ...], length: int, device: LocalDevice, tmp_path: Path
) -> None:
    program = loaded(task_of(SUM, tmp_path), constants, device, length=length)
    assert program.has_chain
    inputs, buffers = [], []
    for position, spec in enumerate((MATRIX, VECTOR)):
        copies = length if position in constants else 1
        values = np.arange(copies * spec.bytes // 4, dtype=np.float32).reshape(copies, *spec.shape) + 100 * position
        inputs.append(values[-1])
        if position not in constants:
            buffers.append(device.buffer(values[0], spec))
            continue
        rows = np.zeros((length, stride_bytes(spec.bytes)), np.uint8)
        rows[:, : spec.bytes] = values.reshape(length, -1).view(np.uint8)
        buffers.append(device.buffer(rows.reshape(-1), TensorSpec((rows.size,), "i8")))
    result = device.buffer(np.zeros(MATRIX.shape, np.float32), MATRIX)
    program.bind([buffers], [result], chained=True)(1)
    np.testing.assert_array_equal(device.read(result, MATRIX), inputs[0] + inputs[1])


def test_the_program_itself_stays_as_it_is(device: LocalDevice, tmp_path: Path) -> None:
    program = loaded(task_of(SUM, tmp_path), (1,), device)
    ones, twos = np.ones(MATRIX.shape, np.float32), np.full(VECTOR.shape, 2, np.float32)
    result = device.buffer(np.zeros(MATRIX.shape, np.float32), MATRIX)
    program.bind([[device.buffer(ones, MATRIX), device.buffer(twos, VECTOR)]], [result])(1)
    np.testing.assert_array_equal(device.read(result, MATRIX), ones + twos)


def test_a_function_of_a_model_that_is_called_chain_is_none(device: LocalDevice) -> None:
    compiled = compile_str(SUM.replace("@main", "@chain"), extra_args=list(FLAGS))
    assert isinstance(compiled, bytes)
    program = Program(compiled, "chain", (MATRIX, VECTOR), (MATRIX,), writes_into_arguments=False)
    assert not device.load(program).has_chain


@pytest.mark.landing
def test_only_programs_that_make_one_dispatch_and_are_to_have_a_chain_have_one(
    device: LocalDevice, tmp_path: Path
) -> None:
    assert not loaded(task_of(SUM, tmp_path), (), device, length=0).has_chain
    assert not loaded(task_of(IN_PLACE, tmp_path), (), device).has_chain, "a copy comes before the dispatch"
