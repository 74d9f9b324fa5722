"""IREE's tools that run a module and read its profile: their paths, and their flags for a program's arguments."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.element_types import Array, dtype_of
from mlir_sched.runner.program import Program


@dataclass(frozen=True)
class ProgramFiles:
    """A program with all its arguments in files: what one process needs to run it.

    Attributes:
        module: File with the compiled module.
        program: The program in the module.
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
    spec = importlib.util.find_spec("iree._runtime_libs")
    folders = [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []
    for folder in folders:
        tools = folder / "iree-benchmark-module", folder / "iree-profile"
        if all(tool.is_file() for tool in tools):
            return str(tools[0]), str(tools[1])
    raise UserError("iree-base-runtime has no iree-benchmark-module and iree-profile; install iree-base-runtime 3.13")


def arguments_of(program: Program) -> tuple[TensorSpec, ...]:
    """Return the tensors that a program's entry takes, in order."""
    return (*program.inputs, *(program.outputs if program.writes_into_arguments else ()))


def write_elements(path: Path, array: Array) -> Path:
    """Write the elements of an array as they lie in memory, and return the path."""
    path.write_bytes(np.ascontiguousarray(array).tobytes())
    return path


def _argument(spec: TensorSpec, path: Path) -> str:
    """Return an argument as IREE's tools take it: shape, type and file of a tensor, or a number."""
    if spec.by_value:
        return str(np.fromfile(path, dtype_of(spec))[0])
    return f"{'x'.join((*map(str, spec.shape), spec.element_type))}=@{path}"
