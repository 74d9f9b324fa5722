"""IREE's runtime as the runner process needs it: devices, buffers and loaded programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, TypeAlias

import iree.runtime as rt
import numpy as np

from mlir_sched.compiler.chain import ENTRY
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.program import Program, StateFunction
from mlir_sched.runner.worker.comparison import poison_bits
from mlir_sched.targets.target import LOCAL_SYNC, LOCAL_TASK
from mlir_sched.tensors.element_types import Array, dtype_of
from mlir_sched.tensors.packing import from_words, to_words, word_of, words_shape

_ELEMENT_TYPES = {
    "f64": rt.HalElementType.FLOAT_64,
    "f32": rt.HalElementType.FLOAT_32,
    "f16": rt.HalElementType.FLOAT_16,
    "bf16": rt.HalElementType.BFLOAT_16,
    "f8E4M3FN": rt.HalElementType.FLOAT_8_E4M3_FN,
    "f8E5M2": rt.HalElementType.FLOAT_8_E5M2,
    "f8E4M3FNUZ": rt.HalElementType.FLOAT_8_E4M3_FNUZ,
    "f8E5M2FNUZ": rt.HalElementType.FLOAT_8_E5M2_FNUZ,
    "complex<f32>": rt.HalElementType.COMPLEX_64,
    "i64": rt.HalElementType.SINT_64,
    "i32": rt.HalElementType.SINT_32,
    "i16": rt.HalElementType.SINT_16,
    "i8": rt.HalElementType.SINT_8,
    "i4": rt.HalElementType.INT_4,
    "i2": int(rt.HalElementType.INT_4) - 2,  # the lowest byte is the number of bits
    "i1": rt.HalElementType.BOOL_8,
    "ui64": rt.HalElementType.UINT_64,
    "ui32": rt.HalElementType.UINT_32,
    "ui16": rt.HalElementType.UINT_16,
    "ui8": rt.HalElementType.UINT_8,
}

_WRITTEN = int(rt.MemoryType.HOST_LOCAL) | int(rt.MemoryType.DEVICE_VISIBLE)
"""Memory that the host writes."""
_READ = _WRITTEN | int(rt.MemoryType.HOST_CACHED)
"""Memory that the host reads: without a cache, memory of CUDA is write-combined, and its reading takes far longer.
Source: ``iree_hal_cuda_allocator_allocate_buffer`` of IREE's ``cuda_allocator.c``."""
GUARD_BYTES = 1024
"""Bytes behind the elements of every buffer that nobody may write: several vectors of any machine. Buffers of 128 KiB
or more begin at the same offset in their pages as without (``client.ENVIRONMENT``)."""
_LONGEST_PATTERN = 4
"""Bytes of the longest pattern that devices fill buffers with. Source: ``iree_hal_command_buffer_fill_buffer``."""


Trace: TypeAlias = Callable[[str, Sequence[Any]], None]
"""Receives the key and the buffer views of every trace op that a program runs."""


class Device(ABC):
    """One IREE device: programs are loaded on it, arrays are written to and read from its memory.

    A device must outlive its buffers and programs, and IREE's runtime crashes at interpreter exit when a device does
    not: leave the process with ``os._exit``.
    """

    _usage: Any
    """What a buffer may be used for."""

    def __init__(self, instance: Any, device: Any, on_trace: Trace | None = None) -> None:
        self._instance = instance
        self._device = device
        self._hal = rt.create_hal_module(instance, device, debug_sink=on_trace and rt.HalModuleDebugSink(on_trace))

    def buffer(self, array: Array, spec: TensorSpec) -> Any:
        """Return a new device buffer view that holds ``array``, with a guard of :data:`GUARD_BYTES` behind it.

        The buffer is larger than its view. IREE's bindings for Python make no view that begins inside of a buffer, so
        there is no guard in front of the elements.
        """
        size_bytes = spec.bytes + GUARD_BYTES
        buffer = self._device.allocator.allocate_buffer(rt.MemoryType.DEVICE_LOCAL, self._usage, size_bytes)
        view = rt.HalBufferView(buffer, list(spec.shape), int(_ELEMENT_TYPES[spec.element_type]))
        self.write(view, spec, array)
        self._write_guard(view, spec, _guard(spec))
        return view

    def mend_guard(self, view: Any, spec: TensorSpec) -> int:
        """Restore what lies behind the elements of a :meth:`buffer`, and return how many bytes of it were changed."""
        expected = _guard(spec)
        changed = int((self._read_guard(view, spec) != expected).sum())
        if changed:
            self._write_guard(view, spec, expected)
        return changed

    @abstractmethod
    def _read_guard(self, view: Any, spec: TensorSpec) -> Array:
        """Return the bytes behind the elements."""

    @abstractmethod
    def _write_guard(self, view: Any, spec: TensorSpec, guard: Array) -> None:
        """Write the bytes behind the elements."""

    def read(self, view: Any, spec: TensorSpec, *, keep: bool = False) -> Array:
        """Return the elements of a buffer view, in its shape and element type.

        Args:
            keep: Whether the elements are kept: otherwise they may be gone at the next call of this device or program.
        """
        elements = from_words(self._words(view, spec), spec)
        return elements.copy() if keep else elements

    @abstractmethod
    def _words(self, view: Any, spec: TensorSpec) -> Array:
        """Return the words of a buffer view's memory (``tensors/packing.py``), which a later call may change."""

    @abstractmethod
    def write(self, view: Any, spec: TensorSpec, array: Array) -> None:
        """Fill a buffer view with an array of its elements, or of unsigned integers of their size.

        Args:
            array: What to write; it may be a scalar, or any shape that broadcasts to that of ``spec``.
        """

    def load(self, program: Program) -> LoadedProgram:
        """Return the program loaded on this device.

        Raises:
            RuntimeError: IREE refuses the module, or the module lacks the entry.
        """
        module = rt.VmModule.copy_buffer(self._instance, program.vmfb)
        if module.lookup_function(program.entry) is None:
            raise RuntimeError(f"the module has no function {program.entry}")
        modules = [*self._parameters(program), self._hal, module]
        return LoadedProgram(self, program, lambda: rt.VmContext(self._instance, modules), module)

    def _parameters(self, program: Program) -> list[Any]:
        """Return the module that a program reads its parameters from, if it has any."""
        providers = []
        for file in program.parameters:
            index = rt.ParameterIndex()
            index.load(file.path)
            providers.append(index.create_provider(scope=file.scope))
        return [rt.create_io_parameters_module(self._instance, *providers)] if providers else []


class LocalDevice(Device):
    """The CPU, with the caching allocator; its buffers lie in the memory of this process.

    Args:
        driver: ``local-sync`` or ``local-task``.
        on_trace: Receives what programs trace; by default IREE prints that.
    """

    _usage = rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING

    def __init__(self, instance: Any, driver: str, on_trace: Trace | None = None) -> None:
        super().__init__(instance, rt.get_driver(driver).create_default_device(allocators=["caching"]), on_trace)

    @classmethod
    def on(cls, instance: Any, threads: int) -> LocalDevice:
        """Return the device for programs on so many threads, of which there are as many workers if several."""
        return cls(instance, LOCAL_SYNC if threads == 1 else LOCAL_TASK)

    def write(self, view: Any, spec: TensorSpec, array: Array) -> None:
        """Write into the memory of a buffer view."""
        self._words(view, spec)[...] = to_words(array, spec)

    def _words(self, view: Any, spec: TensorSpec) -> Array:
        return np.asarray(view.map().asarray(words_shape(spec), word_of(spec)))

    def _read_guard(self, view: Any, spec: TensorSpec) -> Array:
        whole = view.get_buffer().map().asarray((spec.bytes + GUARD_BYTES,), np.dtype(np.uint8))
        guard: Array = np.asarray(whole)[spec.bytes :]
        return guard

    def _write_guard(self, view: Any, spec: TensorSpec, guard: Array) -> None:
        self._read_guard(view, spec)[...] = guard


@dataclass(frozen=True)
class _Staging:
    """A buffer between the memories of a device and the host.

    Attributes:
        mapped: Its memory as the host sees it.
    """

    buffer: Any
    mapped: Any
    bytes: int

    def words(self, spec: TensorSpec) -> Array:
        """Return the first elements of a tensor as they lie in memory."""
        return np.asarray(self.mapped.asarray(words_shape(spec), word_of(spec)))


class RemoteDevice(Device):
    """A device with memory of its own, which the host sees through staging buffers only.

    Some devices have memory that the host can map; nothing here relies on it, so that the programs' buffers lie where
    they do in production.

    Args:
        uri: E.g. ``vulkan``, ``vulkan://GPU-<uuid>`` or ``cuda://GPU-<uuid>``.
    """

    _usage = rt.BufferUsage.DEFAULT

    def __init__(self, instance: Any, uri: str) -> None:
        super().__init__(instance, rt.get_device(uri, cache=False))
        self._stagings: dict[int, _Staging] = {}

    def write(self, view: Any, spec: TensorSpec, array: Array) -> None:
        """Fill a buffer view: with a scalar on the device, with other arrays through a staging buffer."""
        words = to_words(array, spec)
        if words.ndim == 0 and (pattern := _pattern(words)) is not None:
            self._fill(view.get_buffer(), pattern, spec.bytes)
            return
        staging = self._staging(spec.bytes, _WRITTEN)
        staging.words(spec)[...] = words
        self._copy(staging.buffer, view.get_buffer(), spec.bytes)

    def _words(self, view: Any, spec: TensorSpec) -> Array:
        staging = self._staging(spec.bytes, _READ)
        self._copy(view.get_buffer(), staging.buffer, spec.bytes)
        return staging.words(spec)

    def _read_guard(self, view: Any, spec: TensorSpec) -> Array:
        staging = self._staging(GUARD_BYTES, _READ)
        self._copy(view.get_buffer(), staging.buffer, GUARD_BYTES, source_offset=spec.bytes)
        return staging.words(_GUARD)

    def _write_guard(self, view: Any, spec: TensorSpec, guard: Array) -> None:
        staging = self._staging(GUARD_BYTES, _WRITTEN)
        staging.words(_GUARD)[...] = guard
        self._copy(staging.buffer, view.get_buffer(), GUARD_BYTES, target_offset=spec.bytes)

    def _staging(self, size_bytes: int, memory_type: int) -> _Staging:
        """Return a buffer of at least so many bytes in memory of a type; later calls use it again."""
        kept = self._stagings.get(memory_type)
        if kept is None or kept.bytes < size_bytes:
            usage = rt.BufferUsage.TRANSFER | rt.BufferUsage.MAPPING_SCOPED
            buffer = self._device.allocator.allocate_buffer(memory_type, usage, size_bytes)
            kept = self._stagings[memory_type] = _Staging(buffer, buffer.map(), size_bytes)
        return kept

    def _copy(
        self, source: Any, target: Any, size_bytes: int, *, source_offset: int = 0, target_offset: int = 0
    ) -> None:
        """Copy bytes of a buffer on the device's queue and wait for it."""
        commands = rt.HalCommandBuffer(self._device)
        commands.copy(source, target, source_offset, target_offset, size_bytes, end=True)
        self._execute(commands)

    def _fill(self, target: Any, pattern: Array, size_bytes: int) -> None:
        """Fill the first bytes of a buffer on the device's queue and wait for it."""
        commands = rt.HalCommandBuffer(self._device)
        commands.fill(target, pattern, length=size_bytes, end=True)
        self._execute(commands)

    def _execute(self, commands: Any) -> None:
        """Execute commands on the device's queue and wait for their end."""
        semaphore = self._device.create_semaphore(0)
        done = rt.HalFence.create_at(semaphore, 1)
        self._device.queue_execute(commands, rt.HalFence.create_at(semaphore, 0), done)
        done.wait()


class LoadedProgram:
    """A program loaded on a device, in an IREE context of its own.

    Args:
        new_context: Makes a context with the program's modules, in which no function was called.
    """

    def __init__(self, device: Device, program: Program, new_context: Callable[[], Any], module: Any) -> None:
        self.program = program
        self._chain = module.lookup_function(ENTRY) if program.writes_into_arguments else None
        self._device = device
        self._new_context, self._module = new_context, module
        self._context = new_context()
        self._function = module.lookup_function(program.entry)

    def fresh(self) -> LoadedProgram:
        """Return the program in a new context: with the state that it has before the first call."""
        return LoadedProgram(self._device, self.program, self._new_context, self._module)

    @property
    def has_chain(self) -> bool:
        """Whether the program has a chain (``compiler/chain.py``)."""
        return self._chain is not None

    def bind(
        self, inputs: Sequence[Sequence[Any]], destinations: Sequence[Any], *, chained: bool = False
    ) -> Callable[[int], None]:
        """Return a function that calls the program, or its chain, a given number of times and drops the results.

        Args:
            inputs: Buffers of the inputs, one list per set of inputs; the calls take the sets in turns.
            chained: Whether to call the chain; its buffers of constants hold a copy per dispatch.
        """
        invoke, results = self._context.invoke, rt.VmVariantList
        function = self._chain if chained else self._function
        turns = cycle([self._arguments(each, destinations) for each in inputs])

        def run(calls: int) -> None:
            for arguments in islice(turns, calls):
                invoke(function, arguments, results(1))

        return run

    def call(self, inputs: Sequence[Any], destinations: Sequence[Any]) -> list[Any]:
        """Call the program once and return its output buffer views: the destinations where it writes into arguments."""
        results = rt.VmVariantList(len(self.program.outputs))
        self._context.invoke(self._function, self._arguments(inputs, destinations), results)
        if self.program.writes_into_arguments:
            return list(destinations)
        return [self._result(results, i, spec) for i, spec in enumerate(self.program.outputs)]

    def call_other(self, function: StateFunction, inputs: Sequence[Any]) -> list[Any]:
        """Call another function of the module once and return its output buffer views."""
        results, arguments = rt.VmVariantList(len(function.outputs)), rt.VmVariantList(len(inputs))
        self._push(arguments, inputs, function.inputs)
        self._context.invoke(self._module.lookup_function(function.name), arguments, results)
        return [self._result(results, i, spec) for i, spec in enumerate(function.outputs)]

    def _arguments(self, inputs: Sequence[Any], destinations: Sequence[Any]) -> Any:
        arguments = rt.VmVariantList(len(inputs) + len(destinations))
        self._push(arguments, inputs, self.program.inputs)
        for buffer in destinations if self.program.writes_into_arguments else ():
            arguments.push_ref(buffer)
        return arguments

    def _push(self, arguments: Any, inputs: Sequence[Any], specs: Sequence[TensorSpec]) -> None:
        """Append inputs to a list of arguments, scalars by their value."""
        for buffer, spec in zip(inputs, specs, strict=True):
            if spec.by_value:
                value = self._device.read(buffer, spec).item()
                (arguments.push_float if isinstance(value, float) else arguments.push_int)(value)
            else:
                arguments.push_ref(buffer)

    def _result(self, results: Any, index: int, spec: TensorSpec) -> Any:
        """Return a result as a buffer view; for a scalar, a new view is made."""
        if not spec.by_value:
            return results.get_as_object(index, rt.HalBufferView)
        return self._device.buffer(np.array(results.get_variant(index), dtype_of(spec)), spec)


_GUARD = TensorSpec((GUARD_BYTES,), "i8")


def _guard(spec: TensorSpec) -> Array:
    """Return the bytes behind elements: poison, so that what is computed from them shows, too."""
    poison = to_words(poison_bits(spec), spec)
    return np.full(GUARD_BYTES // poison.itemsize, poison).view(np.uint8)


def _pattern(word: Array) -> Array | None:
    """Return what a device fills a buffer with so that every element is a word; None where a word is too long."""
    if word.itemsize <= _LONGEST_PATTERN:
        return word
    parts = word.reshape(1).view(f"u{_LONGEST_PATTERN}")
    return parts[:1] if (parts == parts[0]).all() else None
