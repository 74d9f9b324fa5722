"""What loading a program takes, on a device whose programs are Python's and read weights in a mapped file."""

from __future__ import annotations

import mmap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import Check, InputKind
from mlir_sched.runner.program import Program, StateFunction
from mlir_sched.runner.worker.loading import load_cost
from mlir_sched.tensors.parameters import ParameterFile

WEIGHTS, NOISE = 2**26, 2**23
"""Bytes of the weights, and what else the process may take or give back meanwhile."""
LOAD_S = 0.05
IMAGE = TensorSpec((4,), "f32")
CALLS = [(Program(b"", name, (IMAGE,), (IMAGE,), False), Check(InputKind.RANDOM, 1)) for name in ("first", "second")]


class Loaded:
    """A program whose calls read some of its arrays."""

    def __init__(self, calls: list[str], read: Sequence[np.ndarray], kept: Sequence[np.ndarray]) -> None:
        self._calls, self._read, self._kept = calls, read, kept

    def call_other(self, function: StateFunction, inputs: Sequence[np.ndarray]) -> None:
        assert [each.shape for each in inputs] == [IMAGE.shape]
        self._calls.append(function.name)
        for array in self._read:
            array.max()


class MappingDevice:
    """Loads the program that an entry names."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def buffer(self, array: np.ndarray, spec: TensorSpec) -> np.ndarray:
        assert array.shape == spec.shape
        return array

    def load(self, program: Program) -> Loaded:
        time.sleep(LOAD_S)
        with Path(program.parameters[0].path).open("rb") as file:
            mapped = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        if program.entry == "plain":
            return Loaded(self.calls, [mapped], [])
        folded = mapped + np.uint8(1)
        kept = [mapped, mapped.copy()] if program.entry == "originals are copied" else [mapped]
        return Loaded(self.calls, [folded, mapped] if program.entry == "originals are read" else [folded], kept)


@pytest.mark.parametrize(
    ("entry", "peak", "resident"),
    [("plain", 1, 1), ("folded", 2, 1), ("originals are copied", 3, 2), ("originals are read", 2, 2)],
)
def test_weights_that_replace_others_count_once_and_weights_beside_others_count_twice(
    entry: str, peak: int, resident: int, tmp_path: Path
) -> None:
    path = (tmp_path / "weights").resolve()
    path.write_bytes(bytes(WEIGHTS))
    device: Any = MappingDevice()
    program = Program(b"", entry, (), (), False, (ParameterFile("model", str(path)),))
    cost = load_cost(device, program, CALLS)
    assert device.calls == ["first", "second"] * 2
    assert abs(cost.peak_bytes - peak * WEIGHTS) < NOISE
    assert abs(cost.resident_bytes - resident * WEIGHTS) < NOISE
    assert LOAD_S <= cost.seconds < LOAD_S + 5.0
