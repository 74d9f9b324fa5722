"""What code takes by a model of the device: candidates that are compiled and assembled, and whole programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mlir_sched.compiler import CompileResult, CompilerPool, WorkerSet
from mlir_sched.compiler.reasons import reason
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.evaluation.compiled_code import CompiledCode
from mlir_sched.evaluation.evaluator import Compiling, Evaluator, Evaluators, UntunedError
from mlir_sched.evaluation.gpu_times import GpuTimes
from mlir_sched.gpu_model.ptx import PtxError
from mlir_sched.gpu_model.ptxas import AssemblyError
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.programs import Programs
from mlir_sched.targets.target import GpuResources, Target
from mlir_sched.tasks.task import Task

LAUNCH_S = 3e-6
"""Seconds that a dispatch takes at least, as the device waits for the next launch (``docs/times.md``, "Devices
without timestamps")."""


class CompileAndAssemble(Compiling):
    """The evaluator that runs nothing; a context manager.

    Its outcomes have estimated times. Code for which registers do not suffice is a failure, and so is code without the
    instructions that its script asks for.

    Args:
        workers: Compiler processes; by default one per CPU.
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
        self._model = GpuTimes(target)
        super().__init__(CompilerPool(flags, workers=workers, shared=shared), code)
        self._untuned: dict[str, Outcome] = {}

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        """Return the outcome of the task's untuned code; that of the following tasks is compiled beside it.

        Raises:
            UntunedError: It does not compile alone, or there is no estimate of its time.
        """
        if task.key not in self._untuned:
            result = self._untuned_code(task, following)
            try:
                seconds = self._model.seconds(task, result)
            except (AssemblyError, PtxError) as error:
                raise UntunedError(f"the time of its untuned code cannot be estimated: {reason(str(error))}") from error
            self._code.keep(self._pool, task, None, 1.0)
            self._untuned[task.key] = Outcome(Timing.estimated(seconds, seconds), None, result.binary_hash)
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

    def _outcome(self, task: Task, result: CompileResult, script: str, untuned: Timing) -> Outcome:
        try:
            timing = Timing.estimated(self._model.seconds(task, result, script), untuned.median_s)
        except (AssemblyError, PtxError) as error:
            return Outcome(None, Failure(FailureClass.ASSEMBLY_ERROR, str(error)), result.binary_hash)
        self._code.keep(self._pool, task, script, timing.ratio)
        return Outcome(timing, None, result.binary_hash)


@dataclass(frozen=True)
class EstimatedPrograms(Programs):
    """Programs with times by what a model says of all their dispatches."""

    evaluators: Evaluators
    device: GpuResources

    def first(self, built: BuiltVariant) -> BuiltVariant:
        """Return the default variant with its estimated time; what cannot be run is not left out."""
        return self._estimated(built, None)

    def time(self, built: Sequence[BuiltVariant]) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
        """Return the variants with their estimated times; all have one."""
        first, *others = built
        return (first, *(self._estimated(each, first) for each in others)), {}

    def _estimated(self, built: BuiltVariant, reference: BuiltVariant | None) -> BuiltVariant:
        return with_estimate(built, reference, self.evaluators.of(built), self.device)


def with_estimate(
    built: BuiltVariant, reference: BuiltVariant | None, evaluator: Evaluator, device: GpuResources
) -> BuiltVariant:
    """Return a variant with its estimated time and profile, without scripts.

    A dispatch without an estimate counts with the time that the device's memory needs for its inputs and outputs. What
    is no dispatch, such as a copy, counts nothing.

    Args:
        reference: The default variant, or another one with its ratio to that; None for the default itself.
    """
    tasks, seconds = built.model.tasks, dict[str, float]()
    for number, task in enumerate(tasks, 1):
        try:
            outcome = evaluator.untuned(task, tasks[number:])
            assert outcome.timing is not None
            seconds[task.name] = outcome.timing.median_s
        except UntunedError:
            seconds[task.name] = task.footprint_bytes / device.memory_bytes_per_s
    profile = ProgramProfile(
        {task.name: task.weight * seconds[task.name] for task in tasks}, {task.name: task.weight for task in tasks}
    )
    program_s = max(LAUNCH_S, sum(task.weight * max(LAUNCH_S, seconds[task.name]) for task in tasks))
    default_s = reference.call_s * reference.measured.ratio if reference else program_s
    return replace(built, timing=Timing.estimated(program_s, default_s), profile=profile)
