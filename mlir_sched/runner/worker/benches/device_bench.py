"""Checks programs on a HAL device in this process, and times them on the device in processes of their own."""

import gc
from pathlib import Path

import iree.runtime as rt

from mlir_sched.runner import protocol
from mlir_sched.runner.benchmark_module import ProgramFiles, arguments_of, write_elements
from mlir_sched.runner.program import Program
from mlir_sched.runner.worker.benches.bench import Bench
from mlir_sched.runner.worker.comparison import poisoned
from mlir_sched.runner.worker.device import Device, RemoteDevice
from mlir_sched.runner.worker.dispatch_events import ROUGH_CALLS, DispatchClock
from mlir_sched.runner.worker.paired_sampling import PairSampler


class DeviceBench(Bench):
    """A device such as ``vulkan``, open while programs are checked and closed while they are timed.

    An open device is not idle: the threads with which IREE waits for Mesa's software driver spin all the time, on the
    cores that the driver computes on. Opening one takes about 20 ms.
    """

    def __init__(self, setup: protocol.EventsSetup, folder: Path) -> None:
        super().__init__()
        self._setup = setup
        self._folder = folder
        self._instance = rt.VmInstance()
        self._device: RemoteDevice | None = None
        self._clock = DispatchClock(setup, folder / "dispatches.ireeprof")
        self._sampler = PairSampler(self._clock)
        self._arguments: tuple[Path, ...] = ()
        self._rough_s: dict[int, float] = {}

    def device(self) -> Device:
        """Return the device, opened."""
        if self._device is None:
            self._device = RemoteDevice(self._instance, self._setup.driver)
        return self._device

    def prepare(self, request: protocol.Prepare) -> protocol.Prepared:
        """Forget all programs and prepare a baseline."""
        prepared = super().prepare(request)
        self._close()
        return prepared

    def drop(self, handle: int) -> None:
        """Release a program, and close the device: the checks of these programs are over."""
        super().drop(handle)
        self._remove(handle)
        self._close()

    def load(self, handle: int, program: Program) -> None:
        """Load a program under a handle."""
        self._remove(handle)
        super().load(handle, program)

    def rough_s(self, handle: int, sample_s: float) -> float:  # noqa: ARG002 - a process costs more than its calls
        """Return device seconds per call in one short process, which is run once per program."""
        if handle not in self._rough_s:
            self._close()
            self._rough_s[handle] = self._clock.seconds(self._files(handle), ROUGH_CALLS)
        return self._rough_s[handle]

    def pairs(self, request: protocol.SamplePairs) -> tuple[protocol.Pair, ...]:
        """Time a program and the baseline in turns."""
        self._close()
        return self._sampler.pairs(self._files(protocol.BASELINE), self._files(request.handle), request)

    def _files(self, handle: int) -> ProgramFiles:
        """Return a program with its files; each file is written on first use."""
        module, program = self._module_of(handle), self._programs[handle]
        if not module.exists():
            module.write_bytes(program.vmfb)
        if not self._arguments:
            self._arguments = self._write_arguments(program)
        return ProgramFiles(module, program, self._arguments)

    def _write_arguments(self, program: Program) -> tuple[Path, ...]:
        inputs = self._ready().timed_inputs()
        specs = arguments_of(program)
        arrays = (*inputs, *(poisoned(spec) for spec in specs[len(inputs) :]))
        pairs = enumerate(zip(arrays, specs, strict=True))
        return tuple(write_elements(self._folder / f"argument{i}.bin", array, spec) for i, (array, spec) in pairs)

    def _module_of(self, handle: int) -> Path:
        return self._folder / f"program{handle}.vmfb"

    def _remove(self, handle: int) -> None:
        self._module_of(handle).unlink(missing_ok=True)
        self._clock.forget(self._module_of(handle))
        self._rough_s.pop(handle, None)

    def forget_sample(self) -> None:
        """Drop a sample of the baseline that would serve further pairs."""
        self._sampler.forget()

    def _forget(self) -> None:
        for handle in self._programs:
            self._remove(handle)
        self.forget_sample()
        super()._forget()

    def _leave(self) -> None:
        super()._leave()
        self._arguments = ()

    def _close(self) -> None:
        """Release the device and all that lives on it."""
        if self._device is None:
            return
        if self._current is not None:
            self._ready().close()
        self._loaded.clear()
        self._device = None
        gc.collect()
