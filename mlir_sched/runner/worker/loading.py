"""What loading a program takes: seconds, and resident memory of this process.

The memory of a program on the CPU is that of its process. IREE's allocator counts a part of that only: weights in a
mapped file are used in place, without any allocation.
"""

import ctypes
import mmap
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from mlir_sched.outcome import LoadCost
from mlir_sched.processes.memory import begin_peak, own_bytes, peak_bytes
from mlir_sched.runner.checks.check import Check
from mlir_sched.runner.checks.inputs import make_inputs
from mlir_sched.runner.program import Program, StateFunction
from mlir_sched.runner.worker.device import Device, LoadedProgram

_LIBC = ctypes.CDLL(None, use_errno=True)


def load_cost(device: Device, program: Program, calls: Sequence[tuple[Program, Check]]) -> LoadCost:
    """Load a program, call all of its functions twice, and return what loading has taken.

    Weights that only loading reads, in files that the program has mapped, are resident after the first calls as long as
    memory is not short. They are taken out of the process then, so that what is resident after the second calls is what
    calls need.

    Args:
        device: A device of this process, which has loaded no program so far.
        program: The program.
        calls: Its functions, each with the check that says how its inputs are filled.
    """
    prepared = [(_function(one), _buffers(device, one, check)) for one, check in calls]

    def call(loaded: LoadedProgram) -> None:
        for function, inputs in prepared:
            loaded.call_other(function, inputs)

    before = own_bytes(os.getpid())
    begin_peak()
    start = time.perf_counter()
    loaded = device.load(program)
    loaded_s = time.perf_counter() - start
    first_s = _seconds(call, loaded)
    peak = peak_bytes()
    release_pages([file.path for file in program.parameters])
    once_s = first_s - _seconds(call, loaded)
    return LoadCost(loaded_s + max(0.0, once_s), peak - before, own_bytes(os.getpid()) - before)


def _function(program: Program) -> StateFunction:
    return StateFunction(program.entry, program.inputs, program.outputs)


def _buffers(device: Device, program: Program, check: Check) -> list[object]:
    """Return buffers with the inputs of a check."""
    pairs = zip(make_inputs(program.inputs, check), program.inputs, strict=True)
    return [device.buffer(array, spec) for array, spec in pairs]


def _seconds(call: Callable[[LoadedProgram], None], loaded: LoadedProgram) -> float:
    start = time.perf_counter()
    call(loaded)
    return time.perf_counter() - start


def release_pages(files: Collection[str]) -> None:
    """Take the pages of files out of this process, as the system does when memory is short.

    The next access to a page brings the page back, from the system's cache of files as a rule. Mappings that may be
    written to stay as they are.

    Args:
        files: Absolute paths without symbolic links.

    Raises:
        OSError: The system refuses.
    """
    for begin, end in _mappings(files):
        if _LIBC.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_DONTNEED):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _mappings(files: Collection[str]) -> Iterator[tuple[int, int]]:
    """Yield where mappings of files that may only be read begin and end."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, access, *_, path = line.split(maxsplit=5)
        if path in files and "w" not in access:
            begin, end = addresses.split("-")
            yield int(begin, 16), int(end, 16)
