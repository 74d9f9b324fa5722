"""The tests that every transform module must pass; subclass them for your own (pytest collects the subclass).

::

    class TestOuterProduct(ModuleTests):
        def module(self):
            return OuterProduct()

        def models(self):
            return {"square": Path("matmul.mlir").read_text(), "uneven": UNEVEN}
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import Failure, FailureClass, IllegalTraceError
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.runner.checks.numeric_checks import checks_for_task
from mlir_sched.runner.program import program_of_task
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.transform_scripts.module import TransformModule

ATTEMPTS = 100
"""Draws per sketch that are made without a compiler; about 0.3 ms each."""
SCRIPTS = 5
"""Scripts per sketch that are printed and read back; about 20 ms each."""
REFUSALS = (FailureClass.SCRIPT_ERROR, FailureClass.NOT_APPLIED, FailureClass.COMPILE_ERROR)
"""Failures that a few legal candidates may have: the compiler refuses candidates that no rule of a module foresees."""


@dataclass(frozen=True)
class SketchCase:
    """A sketch of a dispatch in which a module has a step.

    Attributes:
        traces: The legal traces among :data:`ATTEMPTS` draws of the sketch.
    """

    model: str
    task: Task
    space: DesignSpace
    sketch: str
    traces: tuple[Trace, ...]

    @property
    def templates(self) -> list[Mapping[str, Value]]:
        """The values of the sketch's templates, the best guess first."""
        return [values for sketch, values in self.space.guesses() if sketch == self.sketch]

    def tried(self, count: int) -> list[Trace]:
        """Return the first template, if there is one, and up to ``count`` of the traces."""
        first = [self.space.completed(self.sketch, values) for values in self.templates[:1]]
        return [*first, *self.traces[:count]]


class ModuleTests(ABC):
    """The contract of a ``TransformModule`` as tests.

    Attributes:
        target: What is compiled for (``--target``).
        candidates: Random candidates per sketch and model that are compiled and run.
        may_be_refused: Largest share of legal candidates that the compiler may refuse, 0 to 1.
    """

    target: str = "llvm-cpu"
    candidates: int = 3
    may_be_refused: float = 0.0

    @abstractmethod
    def module(self) -> TransformModule:
        """Return the module."""

    @abstractmethod
    def models(self) -> Mapping[str, str]:
        """Return models as MLIR text, by name; each has dispatches that the module schedules."""

    def flags(self, model: str) -> tuple[str, ...]:
        """Return further compiler flags of a model."""
        del model
        return ()

    def space(self, target: Target) -> Space:
        """Return the space that the module is tested in: the target's default one, with the module in front."""
        default, module = Space.default(target), self.module()
        known = [other.name for other in default.modules]
        return default.replace(module.name, module) if module.name in known else default.insert(module)

    def test_every_model_is_scheduled(self) -> None:
        """Each model has a dispatch with a sketch in which the module has a step."""
        assert {case.model for case in _cases(type(self))} == set(self.models())

    def test_every_draw_is_legal_or_refused(self) -> None:
        """A draw either breaks a rule or needs no repair, some are legal, and none raises anything else."""
        for case in _cases(type(self)):
            assert case.traces, f"{case.model}: no draw of {case.sketch} is legal"
            for trace in case.traces:
                assert case.space.repaired(trace) == trace, f"{case.model}: {trace.values}"

    def test_templates_are_legal(self) -> None:
        """Every template makes a legal trace, from values that are drawn under these names."""
        drawn = {name for case in _cases(type(self)) for trace in case.traces for name in trace.values}
        for case in _cases(type(self)):
            for values in case.templates:
                try:
                    known = drawn | case.space.completed(case.sketch, values).values.keys()
                except IllegalTraceError as error:
                    raise AssertionError(f"{case.model}: {case.sketch} with {dict(values)}: {error}") from error
                unknown = sorted(values.keys() - known)
                assert not unknown, f"{case.model}: no {unknown} is drawn that a template of {case.sketch} names"

    def test_features_are_finite(self) -> None:
        """The cost model can learn from every legal draw."""
        for case in _cases(type(self)):
            assert np.isfinite(case.space.features(case.traces)).all(), f"{case.model}: {case.sketch}"

    def test_scripts_are_read_back(self) -> None:
        """The script of a trace tells the trace, and is printed again letter by letter."""
        for case in _cases(type(self)):
            for trace in case.traces[:SCRIPTS]:
                script = case.space.script(trace)
                assert case.space.trace_of(script) == trace, f"{case.model}: {trace.values}"
                assert case.space.script(case.space.trace_of(script)) == script

    def test_candidates_are_applied_and_right(self) -> None:
        """Random candidates and first templates compile, are proven applied and compute what the untuned code does."""
        checked, complaints = 0, []
        driver = detect_target(self.target, 1).driver
        with Runner(RunnerOptions.for_device(driver)) as runner:
            for flags in dict.fromkeys(case.task.flags for case in _cases(type(self))):
                with CompilerPool(flags) as pool:
                    of_flags = [case for case in _cases(type(self)) if case.task.flags == flags]
                    for space, cases in groupby(of_flags, lambda case: case.space):
                        first, *further = cases
                        traces = [trace for case in (first, *further) for trace in case.tried(self.candidates)]
                        failures = check_candidates(first.task, space, traces, pool, runner)
                        checked += len(traces)
                        found = zip(traces, failures, strict=True)
                        complaints += [(first.model, trace, failure) for trace, failure in found if failure]
        assert not [complaint for complaint in complaints if complaint[2].kind not in REFUSALS]
        assert len(complaints) <= self.may_be_refused * checked, complaints


@cache
def _cases(tests: type[ModuleTests]) -> tuple[SketchCase, ...]:
    """Return every sketch of the models of a test class in which the class's module has a step."""
    made, target = tests(), detect_target(tests.target, 1)
    own = made.module().name
    cases = []
    for name, text in made.models().items():
        for task in tasks_of(text, target, made.flags(name)):
            assert task.dispatch is not None
            space = DesignSpace(made.space(target), task.dispatch, target)
            sketches = [sketch for sketch in space.sketches if own in space.modules_of(sketch)]
            cases += [SketchCase(name, task, space, sketch, tuple(_legal(space, sketch))) for sketch in sketches]
    return tuple(cases)


@cache
def tasks_of(text: str, target: Target, flags: tuple[str, ...] = ()) -> tuple[Task, ...]:
    """Return the tasks of a model that have a dispatch; a model that several modules share is extracted once."""
    with temporary_folder() as folder:
        path = Path(folder) / "main.mlir"
        path.write_text(text)
        return tuple(task for task in extract(path, target, flags).tasks if task.dispatch is not None)


def check_candidates(
    task: Task, space: DesignSpace, traces: Sequence[Trace], pool: CompilerPool, runner: Runner
) -> list[Failure | None]:
    """Return why each candidate fails, None for a right one: it is compiled, proven applied and checked.

    Raises:
        BaselineError: The untuned code cannot serve as a reference.
    """
    assert task.dispatch is not None
    compiled = dict(pool.compile(task.source, [None, *map(space.script, traces)]))
    untuned = compiled.pop(0)
    assert untuned.vmfb is not None, untuned.failure
    programs = {i: program_of_task(task, vmfb) for i, r in sorted(compiled.items()) if (vmfb := r.vmfb) is not None}
    checks = checks_for_task(task)
    checked = runner.check(program_of_task(task, untuned.vmfb), list(programs.values()), checks)
    failures = {index: result.failure for index, result in compiled.items()} | dict(zip(programs, checked, strict=True))
    return [failures[index] for index in range(1, len(traces) + 1)]


def _legal(space: DesignSpace, sketch: str) -> list[Trace]:
    """Return the legal traces among :data:`ATTEMPTS` draws with fixed seeds."""
    traces: dict[Trace, None] = {}
    for seed in range(ATTEMPTS):
        try:
            traces[space.attempt(np.random.default_rng(seed), sketch)] = None
        except IllegalTraceError:
            continue
    return list(traces)
