"""IREE's tools that run a module and read its profile: their paths, and their flags for a program's arguments."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.program import Program
from mlir_sched.targets.machine import runtime_tool
from mlir_sched.tensors.element_types import Array, dtype_of
from mlir_sched.tensors.packing import to_words

_COMPLEX_NAMES = {"complex<f32>": "cf64"}
"""Element types that IREE's tools name in another way than MLIR does: by the bits of both parts together."""


@dataclass(frozen=True)
class ProgramFiles:
    """A program with all its arguments in files: what one process needs to run it.

    Attributes:
        arguments: One file of raw elements per argument, in order: the inputs, then the destinations if there are any.
    """

    module: Path
    program: Program
    arguments: tuple[Path, ...]

    def flags(self) -> list[str]:
        """Return the flags of ``iree-benchmark-module`` that name the function and its arguments."""
        specs = arguments_of(self.program)
        inputs = [f"--input={_argument(spec, path)}" for spec, path in zip(specs, self.arguments, strict=True)]
        parameters = [f"--parameters={file}" for file in self.program.parameters]
        return [f"--module={self.module}", f"--function={self.program.entry}", *parameters, *inputs]


def find_tools() -> tuple[str, str]:
    """Return the paths of ``iree-benchmark-module`` and ``iree-profile`` in IREE's runtime package.

    Raises:
        UserError: The package lacks one of the tools.
    """
    return runtime_tool("iree-benchmark-module"), runtime_tool("iree-profile")


def arguments_of(program: Program) -> tuple[TensorSpec, ...]:
    """Return the tensors that a program's entry takes, in order."""
    return (*program.inputs, *(program.outputs if program.writes_into_arguments else ()))


def write_elements(path: Path, array: Array, spec: TensorSpec) -> Path:
    """Write the elements of a tensor as they lie in memory, and return the path."""
    path.write_bytes(to_words(np.ascontiguousarray(array), spec).tobytes())
    return path


def _argument(spec: TensorSpec, path: Path) -> str:
    """Return an argument as IREE's tools take it: shape, type and file of a tensor, or a number."""
    if spec.by_value:
        return str(np.fromfile(path, dtype_of(spec))[0])
    name = _COMPLEX_NAMES.get(spec.element_type, spec.element_type)
    return f"{'x'.join((*map(str, spec.shape), name))}=@{path}"
