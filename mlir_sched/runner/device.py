"""IREE's runtime as the runner process needs it: devices, buffers and loaded programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import iree.runtime as rt
import numpy as np

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.program import Program
from mlir_sched.runner.verify import Array, dtype_of, poison_bits

_ELEMENT_TYPES = {
    "f64": rt.HalElementType.FLOAT_64,
    "f32": rt.HalElementType.FLOAT_32,
    "f16": rt.HalElementType.FLOAT_16,
    "bf16": rt.HalElementType.BFLOAT_16,
    "i64": rt.HalElementType.SINT_64,
    "i32": rt.HalElementType.SINT_32,
    "i16": rt.HalElementType.SINT_16,
    "i8": rt.HalElementType.SINT_8,
    "i1": rt.HalElementType.BOOL_8,
}


class Device:
    """One IREE device with the caching allocator.

    A device must outlive its buffers and programs, and IREE's runtime crashes at interpreter exit when one does not:
    keep every device for the life of the process and leave with ``os._exit``.
    """

    def __init__(self, instance: Any, driver: str) -> None:
        self._instance = instance
        self._device = rt.get_driver(driver).create_default_device(allocators=["caching"])
        self._hal = rt.create_hal_module(instance, self._device)

    def buffer(self, array: Array, spec: TensorSpec) -> Any:
        """Return a new device buffer view that holds ``array``."""
        return self._device.allocator.allocate_buffer_copy(
            memory_type=rt.MemoryType.DEVICE_LOCAL,
            allowed_usage=rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING,
            device=self._device,
            buffer=array.view(_word(spec)),
            element_type=_ELEMENT_TYPES[spec.element_type],
        )

    def load(self, program: Program) -> LoadedProgram:
        """Return the program loaded on this device.

        Raises:
            RuntimeError: IREE refuses the module or it lacks the entry.
        """
        module = rt.VmModule.copy_buffer(self._instance, program.vmfb)
        context = rt.VmContext(self._instance, [self._hal, module])
        function = module.lookup_function(program.entry)
        if function is None:
            raise RuntimeError(f"the module has no function {program.entry}")
        return LoadedProgram(program, context, function)


class LoadedProgram:
    """A program in a context of its own."""

    def __init__(self, program: Program, context: Any, function: Any) -> None:
        self.program = program
        self._context = context
        self._function = function

    def bind(self, inputs: Sequence[Any], destinations: Sequence[Any]) -> Callable[[int], None]:
        """Return a function that calls the program so many times with these buffers and drops what it returns."""
        invoke, function, results = self._context.invoke, self._function, rt.VmVariantList
        arguments = self._arguments(inputs, destinations)

        def run(calls: int) -> None:
            for _ in repeat(None, calls):
                invoke(function, arguments, results(1))

        return run

    def call(self, inputs: Sequence[Any], destinations: Sequence[Any]) -> list[Any]:
        """Call it once and return its output buffer views: the destinations where it writes into arguments."""
        results = rt.VmVariantList(len(self.program.outputs))
        self._context.invoke(self._function, self._arguments(inputs, destinations), results)
        if self.program.writes_into_arguments:
            return list(destinations)
        return [results.get_as_object(i, rt.HalBufferView) for i in range(len(results))]

    def _arguments(self, inputs: Sequence[Any], destinations: Sequence[Any]) -> Any:
        buffers = [*inputs, *(destinations if self.program.writes_into_arguments else ())]
        arguments = rt.VmVariantList(len(buffers))
        for buffer in buffers:
            arguments.push_ref(buffer)
        return arguments


def bits(view: Any, spec: TensorSpec) -> Array:
    """Return the memory of a buffer view as unsigned integers of the element's size, without a copy."""
    return np.asarray(view.map().asarray(spec.shape, _word(spec)))


def values(view: Any, spec: TensorSpec) -> Array:
    """Return the memory of a buffer view as an array of its element type, without a copy."""
    return bits(view, spec).view(dtype_of(spec))


def poison(view: Any, spec: TensorSpec) -> None:
    """Fill a buffer view with the poison of its element type."""
    bits(view, spec)[...] = poison_bits(spec)


def _word(spec: TensorSpec) -> np.dtype[Any]:
    return np.dtype(f"u{dtype_of(spec).itemsize}")
