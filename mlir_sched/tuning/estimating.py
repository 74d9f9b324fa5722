"""Evaluates candidates without a device: compile, prove applied, assemble, and estimate the time by a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType

from mlir_sched.assembly.estimate import estimate
from mlir_sched.assembly.promises import why_broken
from mlir_sched.assembly.ptx import PtxError, device_code, read_kernel
from mlir_sched.assembly.ptxas import AssemblyError, assemble, find_assembler
from mlir_sched.compiler import CompileResult, CompilerPool
from mlir_sched.errors import Failure, FailureClass, UserError
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.reasons import reason
from mlir_sched.targets.target import GpuResources, Target
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.evaluator import UntunedError
from mlir_sched.tuning.untuned_code import UntunedCode


class CompileAndAssemble:
    """The evaluator that runs nothing; a context manager.

    Its outcomes have estimated times. Code for which registers do not suffice is a failure, and so is code without the
    instructions that its script asks for.

    Args:
        flags: Compiler flags of all tasks.
        target: The device.
        workers: Compiler processes; by default one per CPU.

    Raises:
        UserError: The assembler is not installed, or the target has no model.
    """

    def __init__(self, flags: tuple[str, ...], target: Target, *, workers: int | None = None) -> None:
        self._device, self._architecture = modelled_device(target), target.assembler
        self._assembler = find_assembler()
        self._pool = CompilerPool(flags, workers=workers)
        self._untuned_code = UntunedCode(self._pool)
        self._untuned: dict[str, Timing] = {}

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        """Return the outcome of the task's untuned code; that of the following tasks is compiled beside it."""
        result = self._untuned_code.of(task, following)
        if result.failure is not None:
            raise UntunedError(f"IREE cannot compile this dispatch alone: {reason(result.failure.message)}")
        try:
            seconds = self._seconds(task, result)
        except (AssemblyError, PtxError) as error:
            raise UntunedError(f"the time of its untuned code cannot be estimated: {reason(str(error))}") from error
        self._untuned[task.key] = estimated(seconds, seconds)
        return Outcome(self._untuned[task.key], None, result.binary_hash)

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield the outcome of every script."""
        if task.key not in self._untuned:
            self.untuned(task)
        for index, result in self._pool.compile(task.source, scripts):
            if result.failure is not None:
                yield index, Outcome(None, result.failure, result.binary_hash)
            else:
                yield index, known.get(result.binary_hash) or self._outcome(task, result, scripts[index])

    def close(self) -> None:
        """End all processes."""
        self._pool.close()

    def __enter__(self) -> CompileAndAssemble:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _outcome(self, task: Task, result: CompileResult, script: str) -> Outcome:
        try:
            timing = estimated(self._seconds(task, result, script), self._untuned[task.key].median_s)
        except (AssemblyError, PtxError) as error:
            return Outcome(None, Failure(FailureClass.ASSEMBLY_ERROR, str(error)), result.binary_hash)
        return Outcome(timing, None, result.binary_hash)

    def _seconds(self, task: Task, result: CompileResult, script: str = "") -> float:
        """Return the estimated time of one call; without a script, that of the untuned code.

        Raises:
            AssemblyError: The assembler refuses the code, or the code of a script spills registers or lacks
                instructions that the script asks for.
            PtxError: The code or its launch cannot be read.
        """
        assert result.vmfb is not None
        if result.launch is None:
            raise PtxError("the number of workgroups depends on values of the program")
        code = device_code(result.vmfb)
        assembled = assemble(self._assembler, code, self._architecture)
        kernel = read_kernel(code)
        if script and assembled.spilled_bytes:
            raise AssemblyError(f"{assembled.spilled_bytes} bytes of registers are spilled to memory")
        if broken := why_broken(script, kernel):
            raise AssemblyError(broken)
        footprint = sum(tensor.bytes for tensor in (*task.inputs, *task.outputs))
        found = estimate(kernel, assembled, result.launch, self._device, footprint_bytes=footprint)
        return found.seconds


def modelled_device(target: Target) -> GpuResources:
    """Return what the model of time knows of a target's device.

    Raises:
        UserError: There is no model of such devices.
    """
    if target.gpu_resources is None:
        raise UserError(
            f"candidates for the target {target.name} can be compiled, but there is no model of its devices by which "
            "they could be ranked; there is one for cuda"
        )
    return target.gpu_resources


def estimated(seconds: float, untuned_s: float) -> Timing:
    """Return an estimated time as a timing without samples."""
    ratio = untuned_s / seconds
    return Timing(seconds, seconds, seconds, 0, ratio, ratio, ratio)
