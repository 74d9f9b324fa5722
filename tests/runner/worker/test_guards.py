"""Nothing may be written behind the end of an input or a destination, and only the writer is blamed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from array_device import ArrayDevice, Function

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.numeric_checks import checks_for_model
from mlir_sched.runner.program import Program
from mlir_sched.runner.worker.workspace import Workspace
from mlir_sched.tensors.element_types import Array

SPEC = TensorSpec((100,), "f32")


def double(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    outputs[0][...] = 2 * inputs[1]


def behind_input(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    double(inputs, outputs)
    _whole(inputs[1])[-1] = 1.0


def behind_output(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    double(inputs, outputs)
    _whole(outputs[0])[-1] = 1.0


def _whole(elements: Array) -> Array:
    """Return the memory that elements are a part of."""
    assert elements.base is not None
    return elements.base


@pytest.mark.parametrize(
    ("function", "into_arguments", "message"),
    [
        (behind_input, True, "2 bytes behind the end of input 1 were overwritten"),
        (behind_input, False, "2 bytes behind the end of input 1 were overwritten"),
        (behind_output, True, "2 bytes behind the end of output 0 were overwritten"),
        (double, True, None),
        (double, False, None),
    ],
)
def test_what_is_written_behind_a_buffer_is_wrong_and_blamed_on_its_writer_alone(
    function: Function, into_arguments: bool, message: str | None
) -> None:
    device = ArrayDevice({"right": double, "other": function})
    right, other = (Program(b"", name, (SPEC, SPEC), (SPEC,), into_arguments) for name in ("right", "other"))
    made = Workspace(device, right, checks_for_model((SPEC,)))  # type: ignore[arg-type]
    for check, kind in enumerate(("exact", "random")):
        assert made.verify(device.load(other), check) == (message and f"{kind} inputs: {message}")
        assert made.verify(device.load(right), check) is None
