"""Programs compiled and run as users do it: ``iree-compile`` and ``iree-run-module``."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.fuzz.draft import Array
from benchmarks.fuzz.programs import RandomProgram
from benchmarks.mlir_text import Value
from mlir_sched.compiler.iree_compile import iree_compile_path
from mlir_sched.payload import TensorSpec
from mlir_sched.targets.machine import runtime_tool
from mlir_sched.tensors.packing import from_words, to_words, word_of

LIMIT_S = 120.0
"""Seconds of a compilation or a call; both take about a second."""


class PublicRouteError(Exception):
    """A command fails; the message is the first line that it writes."""


def compiled(model: Path, flags: Sequence[str], output: Path) -> Path:
    """Compile a program and return where it is."""
    _called([str(iree_compile_path()), *flags, str(model), "-o", str(output)])
    return output


def outputs(vmfb: Path, program: RandomProgram, folder: Path) -> list[Array]:
    """Return what a compiled program returns for its inputs, by files in a folder."""
    inputs = list[str]()
    for position, (value, array) in enumerate(zip(program.inputs, program.arrays, strict=True)):
        file = folder / f"in{position}.bin"
        file.write_bytes(to_words(np.ascontiguousarray(array), _spec(value)).tobytes())
        inputs.append(f"--input={''.join(f'{size}x' for size in value.shape)}{value.compiled}=@{file}")
    files = [folder / f"out{position}.bin" for position in range(len(program.outputs))]
    tool, to = str(runtime_tool("iree-run-module")), [f"--output=@{file}" for file in files]
    _called([tool, f"--module={vmfb}", "--device=local-sync", "--function=main", *inputs, *to])
    return [
        from_words(np.frombuffer(file.read_bytes(), word_of(_spec(value))), _spec(value)).reshape(value.shape)
        for file, value in zip(files, program.outputs, strict=True)
    ]


def _spec(value: Value) -> TensorSpec:
    return TensorSpec(value.shape, value.compiled)


def _called(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise PublicRouteError(f"{Path(command[0]).name} takes more than {LIMIT_S:.0f} s") from error
    if done.returncode != 0:
        raise PublicRouteError((done.stderr.strip().splitlines() or ["no message"])[0])
