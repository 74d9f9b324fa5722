"""Evaluates candidates of a task: compile, prove applied, check the numbers, time against the untuned code.

Where the untuned code is slow, a script stands for it (:mod:`.yardstick`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from mlir_sched.compiler import CompileResult, CompilerPool, WorkerSet
from mlir_sched.compiler.reasons import reason
from mlir_sched.errors import EnvironmentFailureError, Failure, FailureClass, FailureOrigin, MlirSchedError
from mlir_sched.evaluation.compiled_code import CompiledCode
from mlir_sched.evaluation.compiling_ahead import CompilingAhead
from mlir_sched.evaluation.gpu_times import GpuTimes
from mlir_sched.evaluation.lookahead import Lookahead
from mlir_sched.evaluation.outage import is_of_environment, may_be_of_environment
from mlir_sched.evaluation.yardstick import Yardstick, Yardsticks
from mlir_sched.gpu_model.ptx import PtxError
from mlir_sched.gpu_model.ptxas import AssemblyError
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.runner import BaselineError, Places, Runner, RunnerOptions, RunResult, UnverifiableError
from mlir_sched.runner.checks.numeric_checks import checks_for_task
from mlir_sched.runner.program import Program, program_of_task
from mlir_sched.tasks.task import Task


class UntunedError(MlirSchedError):
    """The untuned code of a task cannot be compiled or run by itself, so nothing can be compared with it.

    Attributes:
        is_lasting: Whether the code is to blame, so that another try ends the same.
    """

    def __init__(self, message: str, *, is_lasting: bool = False) -> None:
        super().__init__(message)
        self.is_lasting = is_lasting


class Evaluator(ABC):
    """Turns scripts into outcomes."""

    @abstractmethod
    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        """Return the outcome of the task's untuned code (its ratio is 1).

        Args:
            following: The tasks whose untuned code is asked for next, in their order.

        Raises:
            UntunedError: The untuned code cannot be compiled or run.
            EnvironmentFailureError, OSError, MemoryError: The machine fails.
        """

    @abstractmethod
    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield (index in ``scripts``, outcome) once per script, first those of the scripts that need not be run.

        Args:
            known: Outcomes by binary hash: a script that compiles to a known binary is not run again.

        Raises:
            UntunedError, BaselineError: The untuned code cannot be compiled or run.
            EnvironmentFailureError, OSError, MemoryError: The machine fails.
        """

    def estimates(self, task: Task, scripts: Sequence[str]) -> list[float | None]:  # noqa: ARG002 - nothing is known
        """Return the seconds per call that scripts are likely to take; None where, as by default, nothing is known."""
        return [None] * len(scripts)

    def anticipate(self, lookahead: Lookahead) -> None:  # noqa: B027 - not all have time to prepare
        """Hear what follows the next call of :meth:`evaluate`, which may have time to prepare that."""

    def canary(self, task: Task) -> Failure | None:  # noqa: ARG002 - nothing can fail
        """Return how the untuned code of a task fails, compiled and run as its candidates are; None if it does not."""
        return None

    def renew(self) -> None:  # noqa: B027 - not all have processes
        """End all processes, so that what follows has new ones."""


class Evaluators(ExitStack):
    """The evaluators of a run, one per set of compiler flags and device, each opened when it is first needed."""

    def __init__(self, open_evaluator: Callable[[BuiltVariant], AbstractContextManager[Evaluator]]) -> None:
        super().__init__()
        self._make = open_evaluator
        self._opened: dict[tuple[tuple[str, ...], bool], Evaluator] = {}

    def of(self, built: BuiltVariant) -> Evaluator:
        """Return the evaluator for the tasks of a variant."""
        setting = built.model.task_flags, built.variant.plan.local_sync
        if setting not in self._opened:
            self._opened[setting] = self.enter_context(self._make(built))
        return self._opened[setting]


class Compiling(Evaluator):
    """What evaluators share that compile code: the compiler's processes, and the code so far; a context manager."""

    def __init__(self, pool: CompilerPool, code: CompiledCode | None) -> None:
        self._pool = pool
        self._code = code or CompiledCode()

    def canary(self, task: Task) -> Failure | None:
        """Return how the untuned code of a task fails to be compiled."""
        return self._compiled_untuned(task).failure

    def renew(self) -> None:
        """End all processes and forget code that was not measured; what follows has new processes."""
        self._code.forget()
        self._pool.renew()

    def close(self) -> None:
        """End all processes."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _compiled_untuned(self, task: Task) -> CompileResult:
        """Compile the untuned code now, even where it is there: that shows whether the machine serves."""
        ((_, result),) = self._pool.compile(task.source, [None], task.constants)
        return result

    def _untuned_code(self, task: Task, following: Sequence[Task]) -> CompileResult:
        """Return the untuned code of a task; that of the following tasks is compiled beside it.

        Raises:
            UntunedError, EnvironmentFailureError: It cannot be compiled alone.
        """
        result = self._code.untuned(self._pool, task, following)
        if result.failure is not None:
            raise not_compiled(result.failure)
        return result


@dataclass
class _Baseline:
    program: Program
    outcome: Outcome


class CompileAndRun(Compiling):
    """The evaluator that measures on this machine; a context manager.

    While programs are measured, what follows is chosen and compiled on the cores that they leave free. Where they leave
    none, compiling and timing take turns, as a compilation on the same core disturbs a timing; what follows is then
    chosen while candidates are compiled.

    Args:
        workers: Compiler processes; by default one per CPU.
        model: Estimates times; without a model there are no estimates.
        shared: The compiler processes of several evaluators, in place of ``workers``.
    """

    def __init__(
        self,
        flags: tuple[str, ...],
        options: RunnerOptions | None = None,
        *,
        workers: int | None = None,
        model: GpuTimes | None = None,
        code: CompiledCode | None = None,
        shared: WorkerSet | None = None,
    ) -> None:
        self._model = model
        self._runner = Runner(options)
        chain_length = self._runner.options.chain_length
        super().__init__(CompilerPool(flags, workers=workers, chain_length=chain_length, shared=shared), code)
        self._baselines: dict[str, _Baseline] = {}
        self._yardsticks = Yardsticks()
        self._held: dict[tuple[str, Program], tuple[float, ...]] = {}
        self._compiling_ahead = CompilingAhead(self._pool, self._runner.spare_cores)
        self._lookahead = Lookahead()

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        """Return the outcome of the task's untuned code; that of the following tasks is compiled beside it."""
        return self._baseline(task, following).outcome

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield the outcome of every script."""
        assert task.dispatch is not None
        programs: dict[int, Program] = {}
        compiled: dict[int, CompileResult] = {}
        with self._compiling_ahead.beside_compiling(self._lookahead.upcoming):
            results = list(self._compiled(task, scripts))  # no outcome may be stored while what follows is chosen
        for index, result in results:
            if result.failure is not None or result.vmfb is None:
                yield index, Outcome(None, result.failure, result.binary_hash)
            elif result.binary_hash in known:
                yield index, known[result.binary_hash]
            else:
                programs[index] = program_of_task(task, result.vmfb)
                compiled[index] = result
        first = {compiled[index].binary_hash: index for index in sorted(programs, reverse=True)}
        distinct = sorted(first.values())
        if not distinct:
            return
        baseline = self._baseline(task)
        with self._compiling_ahead.beside(self._compile_upcoming):
            runs = self._measured(task, baseline, [programs[index] for index in distinct])
        by_hash: dict[str, Outcome] = {}
        for index, run in zip(distinct, runs, strict=True):
            code = compiled[index]
            by_hash[code.binary_hash] = Outcome(run.timing, run.failure, code.binary_hash, verdict=run.verdict)
            if run.valid is not None:
                self._code.keep(self._pool, task, scripts[index], run.valid.ratio)
        for index in sorted(programs):
            yield index, by_hash[compiled[index].binary_hash]

    def estimates(self, task: Task, scripts: Sequence[str]) -> list[float | None]:
        """Return what the model says; the compiled code is there for the next call of :meth:`evaluate`.

        Raises:
            EnvironmentFailureError: Neither some of the scripts nor the untuned code can be compiled at present.
        """
        if self._model is None:
            return [None] * len(scripts)
        with ThreadPoolExecutor(self._pool.workers) as assembling:  # threads that wait for the assembler's processes
            found, of_environment = {}, False
            for index, result in self._code.of(self._pool, [(task, script) for script in scripts]):
                of_environment = of_environment or (
                    result.failure is not None and may_be_of_environment(result.failure)
                )
                found[index] = assembling.submit(self._estimated_s, task, result, scripts[index])
            estimates = [found[index].result() for index in range(len(scripts))]
        if of_environment and (failure := self._compiled_untuned(task).failure) is not None:
            raise EnvironmentFailureError(str(failure))
        return estimates

    def canary(self, task: Task) -> Failure | None:
        """Return how the untuned code of a task fails, compiled, checked and limited as candidates are."""
        assert task.dispatch is not None
        result = self._compiled_untuned(task)
        if result.vmfb is None:
            return result.failure
        program = program_of_task(task, result.vmfb)
        try:
            (failure,) = self._runner.check(program, [program], checks_for_task(task))
        except BaselineError as error:
            return Failure(FailureClass.RUN_ERROR, str(error), FailureOrigin.UNTUNED)
        return failure

    def renew(self) -> None:
        """End all processes and forget code that was not measured; what follows has new processes."""
        super().renew()
        self._runner.close()

    def anticipate(self, lookahead: Lookahead) -> None:
        """Have what follows the next call of :meth:`evaluate` compiled while that call measures."""
        self._lookahead = lookahead

    def close(self) -> None:
        """End all processes."""
        self._compiling_ahead.close()
        super().close()
        self._runner.close()

    def _compiled(self, task: Task, scripts: Sequence[str]) -> Iterator[tuple[int, CompileResult]]:
        """Yield (index in ``scripts``, result) per script; the untuned code is compiled, too, if it is not there."""
        wanted = [*((task, script) for script in scripts), (task, None)]
        yield from ((i, result) for i, result in self._code.of(self._pool, wanted) if i < len(scripts))

    def _measured(self, task: Task, baseline: _Baseline, programs: Sequence[Program]) -> Sequence[RunResult]:
        """Check and time programs of a task; their ratios are relative to the untuned code."""
        assert baseline.outcome.timing is not None
        yardstick = self._yardsticks.of(task)
        if yardstick is not None:
            with suppress(BaselineError):
                runs = self._timed_beside(yardstick.program, task, programs)
                return [replace(run, timing=run.timing and run.timing.scaled(yardstick.ratio)) for run in runs]
            self._yardsticks.drop(task)
        runs = self._timed_beside(baseline.program, task, programs)
        timed = [(run.valid, program) for run, program in zip(runs, programs, strict=True) if run.valid is not None]
        if timed:
            timing, program = max(timed, key=lambda found: found[0].ratio)
            if self._yardsticks.wants(task, timing, baseline.outcome.timing):
                self._try_yardstick(task, baseline, program)
        return runs

    def _timed_beside(self, other: Program, task: Task, programs: Sequence[Program]) -> Sequence[RunResult]:
        """Check and time programs of a task in turns with another one, to which their ratios are relative.

        They compete for the places of the fastest scripts that stay, with all that was timed beside the other program
        by this evaluator: ratios of other days or to other programs may be off by more than intervals say. Where no
        script stays, all programs are of the same use: all get all checks, and none loses.
        """
        assert task.dispatch is not None
        held = self._held.get((task.key, other), ())
        places = Places(self._code.fastest, held) if self._code.fastest else Places(len(programs), whole=True)
        _, runs = self._runner.measure(other, programs, checks_for_task(task), places=places)
        reached = sorted((*held, *(run.least for run in runs if run.valid is not None)), reverse=True)
        self._held[task.key, other] = tuple(reached[: self._code.fastest])
        return runs

    def _try_yardstick(self, task: Task, baseline: _Baseline, program: Program) -> None:
        """Measure the fastest program of a round once more, and choose it as the yardstick if it is as fast again.

        The largest of several noisy ratios is too large as a rule, and would be a factor of all further ones.
        """
        assert task.dispatch is not None
        assert baseline.outcome.timing is not None
        with suppress(BaselineError):
            _, (again,) = self._runner.measure(baseline.program, [program], checks_for_task(task))
            if again.valid is not None and self._yardsticks.wants(task, again.valid, baseline.outcome.timing):
                self._yardsticks.choose(task, Yardstick(program, again.valid.ratio))

    def _compile_upcoming(self, stopped: Callable[[], bool]) -> None:
        """Compile what follows the current call of :meth:`evaluate`."""
        upcoming, self._lookahead = self._lookahead.upcoming(), Lookahead()
        if upcoming is None:
            return
        with suppress(OSError, EnvironmentFailureError):  # what is not there is compiled when it is needed
            for _ in self._compiled(upcoming.task, upcoming.scripts):
                if stopped():
                    return

    def _estimated_s(self, task: Task, result: CompileResult, script: str) -> float | None:
        assert self._model is not None
        try:
            return None if result.vmfb is None else self._model.seconds(task, result, script)
        except (AssemblyError, PtxError):
            return None

    def _baseline(self, task: Task, following: Sequence[Task] = ()) -> _Baseline:
        if task.key not in self._baselines:
            self._baselines[task.key] = self._make_baseline(task, following)
        return self._baselines[task.key]

    def _make_baseline(self, task: Task, following: Sequence[Task]) -> _Baseline:
        assert task.dispatch is not None
        result = self._untuned_code(task, following)
        assert result.vmfb is not None
        program = program_of_task(task, result.vmfb)
        ahead = self._compiling_ahead
        try:
            with ahead.beside(lambda _: self._code.compile_untuned(self._pool, following, ahead.workers)):
                timing, _ = self._runner.measure(program, [], checks_for_task(task))
        except EnvironmentFailureError:
            raise
        except MlirSchedError as error:
            lasts = isinstance(error, UnverifiableError)
            text = f"its untuned code cannot be measured: {reason(str(error))}"
            raise UntunedError(text, is_lasting=lasts) from error
        self._code.keep(self._pool, task, None, 1.0)
        return _Baseline(program, Outcome(timing, None, result.binary_hash, verdict=Verdict.RIGHT))


def not_compiled(failure: Failure) -> MlirSchedError:
    """Return the error for untuned code that cannot be compiled, which may be an error of the machine."""
    if is_of_environment(failure):
        return EnvironmentFailureError(str(failure))
    text = f"IREE cannot compile this dispatch alone: {reason(failure.message)}"
    return UntunedError(text, is_lasting=failure.kind.is_lasting)


def seconds_against(timing: Timing | None, untuned: Timing) -> float | None:
    """Return the time of a candidate on the scale of the task's untuned timing, or None where it has no timing.

    Only the ratio to the interleaved baseline is reliable, because a machine's speed may drift between rounds.
    """
    return None if timing is None else untuned.median_s / timing.ratio
