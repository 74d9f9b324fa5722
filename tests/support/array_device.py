"""A device whose programs are Python functions, with a pool of buffers like that of IREE's caching allocator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.program import Program
from mlir_sched.tensors.element_types import Array, dtype_of

Function: TypeAlias = Callable[[Sequence[Array], Sequence[Array]], None]
"""Reads the inputs and writes the outputs."""


class View:
    """A buffer view, whose memory holds single elements where IREE's is packed.

    Attributes:
        memory: Its elements.
        behind: One element behind the end of them, in the same memory.
        byte_length: Size in bytes of IREE's memory.
    """

    def __init__(self, memory: Array, spec: TensorSpec) -> None:
        whole = np.zeros(memory.size + 1, memory.dtype)
        self.memory = whole[:-1].reshape(memory.shape)
        self.memory[...] = memory
        self.behind = whole[-1:]
        self.byte_length = spec.bytes


class LoadedFunction:
    """A program whose entry names a function."""

    def __init__(self, device: ArrayDevice, program: Program) -> None:
        self._device, self._program = device, program

    def call(self, inputs: Sequence[View], destinations: Sequence[View]) -> list[View]:
        """Call the function on the destinations or, for whole programs, on buffers of the pool."""
        return self._device.run(self._program, inputs, destinations)


class ArrayDevice:
    """Its memory is NumPy's.

    Args:
        functions: The programs by name.
    """

    def __init__(self, functions: dict[str, Function]) -> None:
        self._functions = functions
        self._returned: list[View] = []

    def buffer(self, array: Any, spec: TensorSpec) -> View:
        """Return a new buffer that holds an array."""
        return View(np.array(array).view(dtype_of(spec)).reshape(spec.shape), spec)

    def read(self, view: View, spec: TensorSpec, *, keep: bool = False) -> Array:
        """Return the memory of a buffer, or a copy to keep."""
        return view.memory.copy() if keep else view.memory

    def write(self, view: View, spec: TensorSpec, array: Array) -> None:
        """Fill a buffer."""
        word = f"u{dtype_of(spec).itemsize}"
        view.memory.view(word)[...] = array.view(word)

    def mend_guard(self, view: View, spec: TensorSpec) -> int:
        """Return how many bytes behind the elements are not 0, and make them 0 again."""
        del spec
        changed = int(np.count_nonzero(view.behind.view(np.uint8)))
        view.behind[...] = 0
        return changed

    def load(self, program: Program) -> Any:
        """Return a program that can be called."""
        return LoadedFunction(self, program)

    def run(self, program: Program, inputs: Sequence[View], destinations: Sequence[View]) -> list[View]:
        """Call a program; the buffers that the last call returned are in the pool by now."""
        outputs = list(destinations)
        if not program.writes_into_arguments:
            outputs = [self._allocate(spec) for spec in program.outputs]
            self._returned = outputs
        self._functions[program.entry]([v.memory for v in inputs], [v.memory for v in outputs])
        return outputs

    def _allocate(self, spec: TensorSpec) -> View:
        dtype = dtype_of(spec)
        for view in self._returned:
            if view.memory.shape == spec.shape and view.memory.dtype == dtype:
                self._returned = [other for other in self._returned if other is not view]
                return view
        return View(np.zeros(spec.shape, dtype), spec)
