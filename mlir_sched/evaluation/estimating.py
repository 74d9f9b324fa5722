"""Evaluates candidates without a device: compile, prove applied, assemble, and estimate the time by a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType

from mlir_sched.compiler import CompileResult, CompilerPool, WorkerSet
from mlir_sched.compiler.reasons import reason
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.evaluation.compiled_code import CompiledCode
from mlir_sched.evaluation.evaluator import UntunedError, not_compiled
from mlir_sched.evaluation.time_model import TimeModel
from mlir_sched.gpu_model.ptx import PtxError
from mlir_sched.gpu_model.ptxas import AssemblyError
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task


class CompileAndAssemble:
    """The evaluator that runs nothing; a context manager.

    Its outcomes have estimated times. Code for which registers do not suffice is a failure, and so is code without the
    instructions that its script asks for.

    Args:
        flags: Compiler flags of all tasks.
        target: The device.
        workers: Compiler processes; by default one per CPU.
        code: The code that was compiled so far, of other evaluators, too.
        shared: The compiler processes of several evaluators, in place of ``workers``.

    Raises:
        UserError: The assembler is not installed, or the target has no model.
    """

    def __init__(
        self,
        flags: tuple[str, ...],
        target: Target,
        *,
        workers: int | None = None,
        code: CompiledCode | None = None,
        shared: WorkerSet | None = None,
    ) -> None:
        self._model = TimeModel(target)
        self._pool = CompilerPool(flags, workers=workers, shared=shared)
        self._code = code or CompiledCode()
        self._untuned: dict[str, Outcome] = {}

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        """Return the outcome of the task's untuned code; that of the following tasks is compiled beside it.

        Raises:
            UntunedError: It does not compile alone, or there is no estimate of its time.
        """
        if task.key in self._untuned:
            return self._untuned[task.key]
        result = self._code.untuned(self._pool, task, following)
        if result.failure is not None:
            raise not_compiled(result.failure)
        try:
            seconds = self._model.seconds(task, result)
        except (AssemblyError, PtxError) as error:
            raise UntunedError(f"the time of its untuned code cannot be estimated: {reason(str(error))}") from error
        self._code.keep(self._pool, task, None, 1.0)
        self._untuned[task.key] = Outcome(estimated(seconds, seconds), None, result.binary_hash)
        return self._untuned[task.key]

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield the outcome of every script."""
        untuned = self.untuned(task).timing
        assert untuned is not None
        for index, result in self._code.of(self._pool, [(task, script) for script in scripts]):
            if result.failure is not None:
                yield index, Outcome(None, result.failure, result.binary_hash)
            else:
                yield index, known.get(result.binary_hash) or self._outcome(task, result, scripts[index], untuned)

    def canary(self, task: Task) -> Failure | None:
        """Return how the untuned code of a task fails to be compiled."""
        ((_, result),) = self._pool.compile(task.source, [None])
        return result.failure

    def renew(self) -> None:
        """End all processes and forget code that was not measured; what follows has new processes."""
        self._code.forget()
        self._pool.renew()

    def close(self) -> None:
        """End all processes."""
        self._pool.close()

    def __enter__(self) -> CompileAndAssemble:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _outcome(self, task: Task, result: CompileResult, script: str, untuned: Timing) -> Outcome:
        try:
            timing = estimated(self._model.seconds(task, result, script), untuned.median_s)
        except (AssemblyError, PtxError) as error:
            return Outcome(None, Failure(FailureClass.ASSEMBLY_ERROR, str(error)), result.binary_hash)
        self._code.keep(self._pool, task, script, timing.ratio)
        return Outcome(timing, None, result.binary_hash)


def estimated(seconds: float, untuned_s: float) -> Timing:
    """Return an estimated time as a timing without samples."""
    ratio = untuned_s / seconds
    return Timing(seconds, seconds, seconds, 0, ratio, ratio, ratio)
