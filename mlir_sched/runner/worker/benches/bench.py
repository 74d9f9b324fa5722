"""The benches, which check and time the programs of one task by handle; one class per clock."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from mlir_sched.outcome import LoadCost
from mlir_sched.processes.memory import machine_memory_bytes
from mlir_sched.runner import protocol
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import LONG_CALL_S
from mlir_sched.runner.worker.device import Device, LoadedProgram
from mlir_sched.runner.worker.kept_references import KeptReferences
from mlir_sched.runner.worker.workspace import UnverifiableResults, Workspace

KEPT_BYTES = max(2**28, min(2**30, machine_memory_bytes() // 32))
"""Bytes of inputs and references kept for tasks that may come back; a run has such a process per program variant."""


class Bench(ABC):
    """The loaded programs of the current task, with the workspaces of this task and of earlier ones."""

    def __init__(self) -> None:
        self._current: protocol.Prepare | None = None
        self._workspaces: dict[protocol.Prepare, Workspace] = {}  # the current one last
        self._programs: dict[int, Program] = {}
        self._loaded: dict[int, LoadedProgram] = {}
        self.on_call: Callable[[float], None] = lambda _: None
        """Is told the seconds of every call whose results become references, before the task is prepared."""
        self.references = KeptReferences()
        """Has the results of slow baselines, which other processes may have computed."""

    def prepare(self, request: protocol.Prepare) -> protocol.Prepared:
        """Forget all programs, load the baseline and find out what the checks of candidates need.

        A new workspace checks the baseline when it is made. In a known workspace, which other programs may have damaged
        since, the baseline is checked again. For slow baselines (:data:`LONG_CALL_S`) this check is deferred until a
        candidate fails: a damaged workspace would fail correct candidates, too.

        Raises:
            OSError, MemoryError: The machine fails, not the baseline.
        """
        self._forget()
        known = request in self._workspaces
        try:
            workspace = self._enter(request)
            self.load(protocol.BASELINE, request.baseline)
            error = self._damage(workspace) if known and workspace.call_s < LONG_CALL_S else None
            if workspace.call_s < LONG_CALL_S:
                workspace.call_s = self.rough_s(protocol.BASELINE, 1e-3)
        except UnverifiableResults as exception:
            return protocol.Prepared(0.0, 0.0, str(exception), verifiable=False)
        except (OSError, MemoryError):
            raise
        except Exception as exception:
            return protocol.Prepared(0.0, 0.0, str(exception))
        found = workspace.telling
        return protocol.Prepared(
            workspace.call_s, workspace.check_s, error, constant_outputs=found.constant, telling=found.checks
        )

    def load(self, handle: int, program: Program) -> None:
        """Load a program under a handle.

        Raises:
            RuntimeError: IREE refuses the program.
        """
        self._programs[handle] = program
        self._loaded[handle] = self._place_of(handle)[1].load(program)

    def forget_sample(self) -> None:  # noqa: B027 - not all keep one
        """Drop a sample of the baseline that would serve further pairs: other work comes between."""

    def drop(self, handle: int) -> None:
        """Release a program."""
        self._loaded.pop(handle, None)
        self._programs.pop(handle, None)

    def verify(self, handle: int, check: int) -> str | None:
        """Run a check on a program and say what is wrong, or None."""
        workspace, device = self._place_of(handle)
        workspace.open(device)
        if handle not in self._loaded:
            self._loaded[handle] = device.load(self._programs[handle])
        return workspace.verify(self._loaded[handle], check, again=handle == protocol.BASELINE)

    def verify_races(self, handle: int, check: int) -> str | None:  # noqa: ARG002 - for benches that have others
        """Run a check on a program on other threads than those of timing, and say what is wrong, or None.

        Raises:
            RuntimeError: The bench has no other threads.
        """
        raise RuntimeError("races are looked for on the CPU only")

    def loading(self, request: protocol.MeasureLoading) -> LoadCost:  # noqa: ARG002 - for benches in whose memory it is
        """Load a program in this process, which has loaded none, and return what that takes.

        Raises:
            RuntimeError: Programs do not lie in the memory of this process.
        """
        raise RuntimeError("what loading takes is measured on the CPU only")

    def noise(self, seconds: float) -> tuple[float, ...]:  # noqa: ARG002 - for benches that have one
        """Run the calibration kernel for some seconds, and return the seconds of every run.

        Raises:
            RuntimeError: The bench has no calibration kernel.
        """
        raise RuntimeError("noise is measured on the CPU only")

    @abstractmethod
    def device(self) -> Device:
        """Return the device that programs are checked on."""

    @abstractmethod
    def rough_s(self, handle: int, sample_s: float) -> float:
        """Return rough seconds per call of a warm program, from samples of about ``sample_s`` where calls are short."""

    @abstractmethod
    def pairs(self, request: protocol.SamplePairs) -> tuple[protocol.Pair, ...]:
        """Time a program and the baseline back to back."""

    def _enter(self, request: protocol.Prepare) -> Workspace:
        """Make a task the current one, and return its workspace, opened."""
        if request != self._current:
            self._leave()
        self._current = None  # until its workspace is there
        workspace = self._workspaces.pop(request, None) or self._new(request)
        workspace.open(self.device())
        self._workspaces[request] = workspace
        self._current = request
        while len(self._workspaces) > 1 and sum(w.bytes for w in self._workspaces.values()) > KEPT_BYTES:
            del self._workspaces[next(iter(self._workspaces))]
        return workspace

    def _new(self, request: protocol.Prepare) -> Workspace:
        """Return the workspace of a task that is new here, and keep the results of a baseline whose calls are slow."""
        baseline, checks, name = request.baseline, request.checks, self.references.name_of(request)
        known = self.references.find(name)
        workspace = Workspace(self.device(), baseline, checks, self.on_call, silent=request.silent, known=known)
        if known is None and workspace.call_s:
            self.references.keep(name, workspace.results)
        return workspace

    def _damage(self, workspace: Workspace) -> str | None:
        """Return what is wrong with the baseline's results by now, or None."""
        messages = (self.verify(protocol.BASELINE, check) for check in workspace.telling.checks)
        return next(filter(None, messages), None)

    def _place_of(self, handle: int) -> tuple[Workspace, Device]:  # noqa: ARG002 - devices may differ by it
        """Return the workspace of the current task and the device for a program.

        Raises:
            RuntimeError: There is no current task.
        """
        return self._ready(), self.device()

    def _leave(self) -> None:
        """Release what only the current task needs."""
        if self._current is not None:
            self._ready().close()

    def _forget(self) -> None:
        self._loaded.clear()
        self._programs.clear()

    def _ready(self) -> Workspace:
        if self._current is None:
            raise RuntimeError("no baseline was prepared")
        return self._workspaces[self._current]
