"""Timed calls take copies of the constants of a large model in turns: no call finds them where the call before did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import iree.runtime as rt
import numpy as np
import pytest
from array_device import ArrayDevice, View

from mlir_sched.compiler import CompilerPool
from mlir_sched.compiler.chain import stride_bytes
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import Check, InputKind
from mlir_sched.runner.program import Program, program_of_task
from mlir_sched.runner.worker.device import LocalDevice
from mlir_sched.runner.worker.workspace import MOST_COPIES, Workspace
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import LOCAL_SYNC
from mlir_sched.tasks import extract

LENGTH = 4
"""Dispatches of the chains here."""
VECTOR = TensorSpec((1000,), "f32")
CHECKS = (Check(InputKind.EXACT, 1), Check(InputKind.RANDOM, 2, tolerance=1e-5))
SUM = """
func.func @main(%a: tensor<1000xf32>, %b: tensor<1000xf32>) -> tensor<1000xf32> {
  %sum = arith.addf %a, %b : tensor<1000xf32>
  return %sum : tensor<1000xf32>
}
"""


class Bound:
    """A loaded program that keeps what it was bound to."""

    def bind(
        self, inputs: Sequence[Sequence[View]], destinations: Sequence[View], *, chained: bool = False
    ) -> Callable[[int], None]:
        self.inputs, self.destinations, self.chained = inputs, destinations, chained
        return lambda calls: None


def added(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    outputs[0][...] = inputs[0] + inputs[1]


def bound_of(constants: tuple[int, ...], reuse_bytes: int, *, chained: bool = False) -> list[list[View]]:
    """Return the inputs that the timed calls of a sum of two vectors, or of its chain, take in turns."""
    program = Program(b"", "added", (VECTOR, VECTOR), (VECTOR,), True, constants=constants, reuse_bytes=reuse_bytes)
    workspace = Workspace(ArrayDevice({"added": added}), program, CHECKS)  # type: ignore[arg-type]
    first, again = Bound(), Bound()
    for bound in (first, again):
        if chained:
            workspace.chain_runner_of(bound, LENGTH)  # type: ignore[arg-type]
        else:
            workspace.runner_of(bound)  # type: ignore[arg-type]
    assert first.chained == chained
    assert first.inputs is again.inputs, "all programs of a task take the same buffers"
    return [list(each) for each in first.inputs]


@pytest.mark.parametrize(("read", "copies"), [(5 * VECTOR.bytes, 5), (5 * VECTOR.bytes + 1, 5), (1 << 30, MOST_COPIES)])
def test_constants_have_as_many_copies_as_the_model_reads_in_between(read: int, copies: int) -> None:
    turns = bound_of((1,), read)
    assert len(turns) == copies
    assert len({id(other) for _, other in turns}) == copies
    assert len({id(own) for own, _ in turns}) == 1
    for _, other in turns:
        np.testing.assert_array_equal(other.memory, turns[0][1].memory)


@pytest.mark.parametrize(("constants", "read"), [((), 0), ((), 1 << 20), ((0, 1), VECTOR.bytes)])
def test_other_inputs_stay_where_they_are(constants: tuple[int, ...], read: int) -> None:
    assert len(bound_of(constants, read)) == 1


@pytest.mark.parametrize(("copies", "sets"), [(1, 1), (LENGTH, 1), (LENGTH + 1, 2)])
def test_every_dispatch_of_a_chain_has_a_copy_of_the_constants(copies: int, sets: int) -> None:
    turns = bound_of((1,), copies * VECTOR.bytes, chained=True)
    assert len(turns) == sets
    for _, constants in turns:
        rows = constants.memory.view(np.uint8).reshape(LENGTH, stride_bytes(VECTOR.bytes))[:, : VECTOR.bytes]
        assert len(np.unique(rows, axis=0)) == 1
    own, constants = bound_of((), 0, chained=True)[0]
    assert own.memory.shape == constants.memory.shape == VECTOR.shape


@pytest.mark.promise
def test_calls_take_sets_of_inputs_in_turns(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(SUM)
    (task,) = extract(tmp_path / "model.mlir", detect_target("llvm-cpu", 1)).tasks
    with CompilerPool(task.flags, workers=1) as pool:
        ((_, compiled),) = pool.compile(task.source, [None])
    assert compiled.vmfb is not None
    device = LocalDevice(rt.VmInstance(), LOCAL_SYNC)
    ones, twos, threes = (device.buffer(np.full(1000, n, np.float32), VECTOR) for n in (1, 2, 3))
    result = device.buffer(np.zeros(1000, np.float32), VECTOR)
    run = device.load(program_of_task(task, compiled.vmfb)).bind([[ones, twos], [ones, threes]], [result])
    found = []
    for calls in (1, 1, 1, 2, 2, 1):
        run(calls)
        found.append(device.read(result, VECTOR)[0])
    assert found == [3, 4, 3, 3, 3, 4]
