"""What a run knows the times of its programs from: the device that they run on, or a model of a device.

The one place where a run with a device and a run without one differ; everything else asks the run's meter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from mlir_sched.compiler import WorkerSet
from mlir_sched.emission.export import Emission, emit
from mlir_sched.emission.finalists import FINALISTS, Finalists, choose_finalists
from mlir_sched.emission.sessions import EstimatedSessions
from mlir_sched.errors import EnvironmentFailureError, MlirSchedError
from mlir_sched.evaluation.compiled_code import CompiledCode
from mlir_sched.evaluation.estimating import CompileAndAssemble, EstimatedPrograms
from mlir_sched.evaluation.evaluator import CompileAndRun, Evaluator, Evaluators
from mlir_sched.evaluation.gpu_times import GpuTimes, modelled_device
from mlir_sched.gpu_model.estimate import VERSION
from mlir_sched.gpu_model.ptxas import find_assembler
from mlir_sched.library.library import TunedSequence, sequence_symbol
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.proof import Prover
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.choosing import BuiltVariants
from mlir_sched.program.variants.programs import MeasuredPrograms, Programs, Source
from mlir_sched.program.whole_program import CompiledModel, measure_programs
from mlir_sched.runner import BaselineError, Runner, RunnerOptions
from mlir_sched.search.strategy import DRAWN
from mlir_sched.targets import absent_target, detect_target
from mlir_sched.targets.target import Target
from mlir_sched.tensors.parameters import ParameterFile
from mlir_sched.tuning.ledger import Ledger
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.progress import STAGES, STAGES_WITHOUT_DEVICE, Phase
from mlir_sched.tuning.task_search import TaskSearch


@dataclass(frozen=True)
class Meter(ABC):
    """Says what candidates and programs take, during the search and at its end.

    Attributes:
        drawn: Traces per candidate of a task's first round (``TaskSearch``).
        workers: The compiler processes that all evaluators share; they end with the search.
        stages: What each phase of the run is called.
    """

    model: Path
    target: Target
    drawn: int = field(default=1, kw_only=True)
    code: CompiledCode = field(default_factory=lambda: CompiledCode(FINALISTS), kw_only=True)
    workers: WorkerSet = field(default_factory=WorkerSet, kw_only=True)
    stages: ClassVar[Mapping[Phase, str]] = STAGES

    @abstractmethod
    def evaluator(self, built: BuiltVariant) -> AbstractContextManager[Evaluator]:
        """Return the evaluator for the tasks of a variant."""

    @abstractmethod
    def programs(
        self, evaluators: Evaluators, parameters: tuple[ParameterFile, ...]
    ) -> AbstractContextManager[Programs]:
        """Return what makes programs without scripts and says what they take."""

    @abstractmethod
    def interim(self, programs: Sequence[ProgramSearch]) -> Mapping[str, float]:
        """Return the times of programs with their best scripts so far, by name, relative to one of them."""

    @abstractmethod
    def finalists(
        self, searches: Sequence[TaskSearch], tuned: BuiltVariant, seconds: float, ledger: Ledger
    ) -> Finalists:
        """Return the scripts to emit; arguments as in :func:`choose_finalists`, with the variant that has the tasks."""

    @abstractmethod
    def emission(self, variants: BuiltVariants, tuned: BuiltVariant, finalists: Finalists, ledger: Ledger) -> Emission:
        """Return the result to write, proven as a user compiles it; arguments as in :func:`emit`."""


def meter_of(model: Path, options: TuneOptions) -> Meter:
    """Return the meter that the options ask for.

    Raises:
        UserError: The device is not there, or is one that nothing is known of without running programs.
    """
    return EstimatedByModel.of(model, options) if options.check_only else MeasuredOnDevice.of(model, options)


@dataclass(frozen=True)
class MeasuredOnDevice(Meter):
    """The meter of a run on a device of this machine: programs are run, checked and timed.

    Attributes:
        gpu_times: Chooses the first candidates of a task among more; None where the target has no model.
    """

    options: TuneOptions
    gpu_times: GpuTimes | None = None

    @staticmethod
    def of(model: Path, options: TuneOptions) -> MeasuredOnDevice:
        """Return the meter for a device of this machine."""
        target = detect_target(options.target, options.threads)
        gpu_times = GpuTimes.of(target)
        return MeasuredOnDevice(model, target, options, gpu_times, drawn=1 if gpu_times is None else DRAWN)

    def evaluator(self, built: BuiltVariant) -> CompileAndRun:
        """Return an evaluator that runs candidates, on as many threads as the variant."""
        on_cores = replace(self._measuring, threads=built.on(self.target).cores)
        flags = built.model.task_flags
        return CompileAndRun(flags, on_cores, model=self.gpu_times, code=self.code, shared=self.workers)

    def programs(
        self, evaluators: Evaluators, parameters: tuple[ParameterFile, ...]
    ) -> AbstractContextManager[MeasuredPrograms]:
        """Return what times programs, in a process of its own."""
        del evaluators
        source = Source(self.model, self.target, parameters)
        return MeasuredPrograms.open(source, self._measuring.first_look, self.options.values)

    def interim(self, programs: Sequence[ProgramSearch]) -> Mapping[str, float]:
        """Compile the programs with their scripts and time them in turns."""
        return interim_times(self.model, [(each.built, each.searches) for each in programs], self._measuring)

    def finalists(
        self, searches: Sequence[TaskSearch], tuned: BuiltVariant, seconds: float, ledger: Ledger
    ) -> Finalists:
        """Measure the best candidates once more."""
        final = RunnerOptions.final(self.target.driver, threads=tuned.on(self.target).cores)
        return choose_finalists(searches, final, seconds, self.code, ledger)

    def emission(self, variants: BuiltVariants, tuned: BuiltVariant, finalists: Finalists, ledger: Ledger) -> Emission:
        """Prove the program, and measure whether it is faster."""
        final = RunnerOptions.final(self.target.driver, threads=self.target.cores)
        return emit(self.model, variants, tuned, finalists, final, self.target, ledger)

    @property
    def _measuring(self) -> RunnerOptions:
        return RunnerOptions.for_device(self.target.driver, threads=self.target.cores, seed=self.options.seed)


@dataclass(frozen=True)
class EstimatedByModel(Meter):
    """The meter of a run without a device: code is proven applied and assembled, and a model estimates its time.

    Nothing is run, so nothing is known of numbers and times. What is emitted says so. The device need not be there, and
    its times are of a kind of their own: they never meet measured ones.
    """

    stages: ClassVar[Mapping[Phase, str]] = STAGES_WITHOUT_DEVICE

    @staticmethod
    def of(model: Path, options: TuneOptions) -> EstimatedByModel:
        """Return the meter for a device that has a model.

        Raises:
            UserError: The target has to be a device of this machine, or has no model, or the assembler is missing.
        """
        described = absent_target(options.target)
        modelled_device(described)
        find_assembler()
        machine = (*described.machine, ("times", f"estimated by model {VERSION}"))
        return EstimatedByModel(model, replace(described, machine=machine))

    def evaluator(self, built: BuiltVariant) -> CompileAndAssemble:
        """Return an evaluator that runs nothing."""
        return CompileAndAssemble(built.model.task_flags, self.target, code=self.code, shared=self.workers)

    def programs(
        self, evaluators: Evaluators, parameters: tuple[ParameterFile, ...]
    ) -> AbstractContextManager[EstimatedPrograms]:
        """Return what adds up the estimates of a program's dispatches."""
        source = Source(self.model, self.target, parameters)
        return nullcontext(EstimatedPrograms(source, evaluators, modelled_device(self.target)))

    def interim(self, programs: Sequence[ProgramSearch]) -> Mapping[str, float]:
        """Return what the programs are expected to take."""
        return {program.name: program.expected_s() for program in programs}

    def finalists(
        self, searches: Sequence[TaskSearch], tuned: BuiltVariant, seconds: float, ledger: Ledger
    ) -> Finalists:
        """Return the best candidate of every task by the estimates, which another look would not change."""
        del tuned
        return choose_finalists(searches, None, seconds, self.code, ledger)

    def emission(self, variants: BuiltVariants, tuned: BuiltVariant, finalists: Finalists, ledger: Ledger) -> Emission:
        """Prove the program, and compare the estimates."""
        options, sessions = RunnerOptions.final(self.target.driver), EstimatedSessions(finalists.winners)
        return emit(self.model, variants, tuned, finalists, options, self.target, ledger, sessions)


def interim_times(
    path: Path, programs: Sequence[tuple[BuiltVariant, Sequence[TaskSearch]]], options: RunnerOptions
) -> dict[str, float]:
    """Return the time of every program with its best scripts so far, by variant.

    Returns:
        Times relative to the first program that can be compiled; programs that fail, or compute other results than the
        first one, are missing. A script that is at fault is left out of its program. The times are only a ranking: the
        emitted program is checked against the untuned one.

    Raises:
        EnvironmentFailureError: The machine fails.
    """
    compiled: list[tuple[BuiltVariant, CompiledModel]] = []
    for built, searches in programs:
        try:
            compiled.append((built, _with_best_scripts(path, built, searches)))
        except EnvironmentFailureError:
            raise
        except MlirSchedError:
            continue
    if not compiled:
        return {}
    (first, reference), *others = compiled
    with Runner(options) as runner:
        try:
            _, results = measure_programs(runner, first.model, reference, [program for _, program in others])
        except BaselineError:
            return {}
    timed = zip((built for built, _ in others), (result.valid for result in results), strict=True)
    relative = {built.variant.name: 1 / timing.ratio for built, timing in timed if timing is not None}
    return {first.variant.name: 1.0, **relative}


def _with_best_scripts(path: Path, built: BuiltVariant, searches: Sequence[TaskSearch]) -> CompiledModel:
    """Return a program with the best script of each dispatch so far, as far as the scripts can be proven."""
    sequences: dict[str, TunedSequence] = {}
    for number, search in enumerate(searches):
        trace, task = search.history.best_trace(), search.task
        if trace is not None:
            symbol = sequence_symbol(number, task.name)
            sequences[task.key] = TunedSequence(symbol, task.source, search.space, trace, dispatch=task.name)
    if not sequences:
        return built.compiled()
    with temporary_folder() as folder:
        return Prover(path, Path(folder)).prove(built, sequences).compiled()
