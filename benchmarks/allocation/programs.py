"""Recorded plans as a run sees them: programs that are built, timed and profiled without a compiler."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from benchmarks.allocation.candidates import RecordedEvaluator, RecordedTasks, timing_of
from benchmarks.allocation.recorded import Called, RecordedPlan, RecordedRun
from benchmarks.allocation.virtual import VirtualClock
from mlir_sched.evaluation.evaluator import Evaluator
from mlir_sched.library import RewriteScript
from mlir_sched.program.building import Attempt
from mlir_sched.program.checking.captured_values import MOST_SHARE
from mlir_sched.program.plan import Plan, Site
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.rewrites.offered import offered_rewrites, offered_site_kinds
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.other_algorithms import OtherAlgorithm
from mlir_sched.program.variants.programs import Programs, Source
from mlir_sched.program.variants.rewritten import RewrittenVariants
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import LOCAL, Target
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.program_search import ProgramSearch


@dataclass(frozen=True)
class RecordedPrograms(Programs):
    """The programs of a recorded run, and the meter of its replay.

    Attributes:
        tasks: The tasks of the run, in one order.
        clock: The clock of the replay.
    """

    tasks: RecordedTasks
    clock: VirtualClock

    @staticmethod
    def of(tasks: RecordedTasks, clock: VirtualClock, path: Path) -> RecordedPrograms:
        """Return the programs of a recorded run, on its machine, as far as rules ask for the machine.

        Args:
            path: The file of the run, which stands for the network.
        """
        processor, threads = tasks.run.machine.processor, tasks.run.threads
        target = Target("llvm-cpu", "llvm-cpu", LOCAL, (), "recorded", "", processor, threads, 64, 32)
        return RecordedPrograms(Source(path, target), tasks, clock)

    @property
    def run(self) -> RecordedRun:
        """The recorded run."""
        return self.tasks.run

    @cached_property
    def sites(self) -> Mapping[str, Site]:
        """The sites of the network, by name."""
        kinds = {
            type(kind).__name__: kind for kind in offered_site_kinds(target_kind(self.source.target.name).rewrites)
        }
        return {name: Site(kinds[kind], shape) for name, (kind, shape) in self.run.sites.items()}

    @contextmanager
    def rewriting(self) -> Iterator[Callable[[], RewrittenVariants]]:
        """Yield what returns the plans with rewrites."""
        target = self.source.target
        offered = [Plan(rewrites) for rewrites in offered_rewrites(target_kind(target.name).rewrites, target.cores)]
        recorded = {plan.name for plan in self.run.plans}
        variants = tuple(_scripted(plan) for plan in offered if plan.name in recorded)

        def rewritten() -> RewrittenVariants:
            self.clock.works(self.run.begin_s)
            return RewrittenVariants(variants, sites=tuple(self.sites.values()))

        yield rewritten

    def planned(self, plan: Plan) -> Variant:
        """Return the variant by a plan."""
        return _scripted(plan)

    def build(self, variant: Variant) -> BuiltVariant:
        """Return a variant."""
        return self._built(variant)

    def first(self, built: BuiltVariant) -> BuiltVariant:
        """Return the default variant as it is."""
        return built

    def attempt(self, variant: Variant, default: Model) -> Attempt:
        """Return a variant, or why there is none."""
        del default
        built, plan = self._built(variant), self.run.plan(variant.name)
        return Attempt(built) if plan.code else Attempt(None, plan.why_not)

    def time(self, built: Sequence[BuiltVariant]) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
        """Return variants with their times; the first one's session is that of the others, if there are any."""
        timed = [self._timed(each) for each in built]
        for each in built[1:] or built:
            self.clock.works(self.run.plan(each.variant.name).look_s)
        failed = {each.variant.name: self.run.plan(each.variant.name).why_not for each in timed if each.timing is None}
        return tuple(timed), failed

    def profiled(self, built: BuiltVariant) -> BuiltVariant:
        """Return a variant that was timed with its profile."""
        return built if built.timing is None else self.profiled_first(built)

    def profiled_first(self, built: BuiltVariant) -> BuiltVariant:
        """Return a variant with its profile."""
        if built.profile is not None:
            return built
        plan, weights = self.run.plan(built.variant.plan.base.name), {t.name: t.weight for t in built.model.tasks}
        self.clock.works(plan.profile_s)
        if plan.profile is None:
            return built
        seconds = {name: self.clock.speed * taken_s for name, taken_s in plan.profile.items()}
        return replace(built, profile=ProgramProfile(seconds, {name: weights.get(name, 1) for name in seconds}))

    def evaluator(self, built: BuiltVariant) -> AbstractContextManager[Evaluator]:
        """Return the evaluator of all variants."""
        del built
        return nullcontext(RecordedEvaluator(self.tasks, self.clock))

    def alternatives(self, built: BuiltVariant) -> tuple[OtherAlgorithm, ...]:
        """Return the other algorithms for a plan's program."""
        own = built.variant.plan
        if own.local_sync or own.algorithms or not any(map(own.has_choice, self.sites.values())):
            return ()
        plan = self.run.plan(own.name)
        self.clock.works(plan.algorithms_s)
        return tuple(
            OtherAlgorithm(self.sites[each.site], each.gone, tuple(map(self.tasks.task, each.made)))
            for each in plan.algorithms
        )

    def compose(self, built: BuiltVariant, sites: Sequence[Site]) -> BuiltVariant:
        """Return a variant with other algorithms; its time is that of its dispatches, each alone, and of the rest."""
        plan = self.run.plan(built.variant.plan.base.name)
        self.clock.works(plan.build_s + plan.look_s)
        calls = {task.key: Called(task.key, task.name, task.weight) for task in built.model.tasks}
        for each in plan.algorithms:
            if self.sites[each.site] in sites:
                for key, gone in each.gone.items():
                    calls[key] = replace(calls[key], weight=calls[key].weight - gone)
                for made in each.made:
                    known = calls.get(made.key, replace(made, weight=0))
                    calls[made.key] = replace(known, weight=known.weight + made.weight)
        tasks = tuple(self.tasks.task(called) for called in calls.values() if called.weight > 0)
        seconds = built.call_s + self.untuned_s(tasks) - self.untuned_s(built.model.tasks)
        timing = timing_of(seconds, built.measured.ratio * built.call_s / seconds)
        variant = _scripted(built.variant.plan.base.with_algorithms(sites))
        return replace(built, variant=variant, model=replace(built.model, tasks=tasks), timing=timing, profile=None)

    def untuned_s(self, tasks: Sequence[Task]) -> float:
        """Return the seconds per run that tasks take without scripts, as far as known."""
        alone = (task.weight * (self.tasks.course(task.key).task.untuned_s or 0.0) for task in tasks)
        return self.clock.speed * sum(alone)

    def values(self, run_s: float) -> Callable[[BuiltVariant], BuiltVariant]:
        """Return what lets the seconds pass that recording a variant's values takes, where they are recorded."""
        left_s = MOST_SHARE * run_s

        def recorded(built: BuiltVariant) -> BuiltVariant:
            nonlocal left_s
            if built.build_s <= left_s:
                capture_s = self.run.plan(built.variant.name).capture_s
                left_s -= self.clock.speed * capture_s
                self.clock.works(capture_s)
            return built

        return recorded

    def interim(self, programs: Sequence[ProgramSearch]) -> Mapping[str, float]:
        """Return what programs take with their best scripts so far; each is compiled and timed for that."""
        for program in programs:
            plan = self.run.plan(program.built.variant.plan.base.name)
            self.clock.works(plan.build_s + plan.look_s)
        return {program.name: program.expected_s() for program in programs}

    def _built(self, variant: Variant) -> BuiltVariant:
        plan = self.run.plan(variant.name)
        self.clock.works(plan.build_s)
        model = Model(str(self.source.path), (), tuple(map(self.tasks.task, plan.tasks)), variant.plan.flags)
        return BuiltVariant(variant, model, _program(plan), None, (), build_s=self.clock.speed * plan.build_s)

    def _timed(self, built: BuiltVariant) -> BuiltVariant:
        plan = self.run.plan(built.variant.name)
        if plan.call_s is None or built.timing is not None:
            return self._in_place(built, plan)
        return self._in_place(replace(built, timing=timing_of(self.clock.speed * plan.call_s, plan.ratio)), plan)

    def _in_place(self, built: BuiltVariant, plan: RecordedPlan) -> BuiltVariant:
        """Return a variant with the tasks of its plan: those in the calling thread are others than on threads."""
        return (
            replace(built, model=replace(built.model, tasks=tuple(map(self.tasks.task, plan.tasks))))
            if plan.tasks
            else built
        )


def _scripted(plan: Plan) -> Variant:
    """Return the variant by a plan, with a script in name only."""
    return Variant(plan, RewriteScript(plan.name, "@recorded", "")) if plan.steps else Variant(plan)


def _program(plan: RecordedPlan) -> bytes:
    """Return a module file whose code has the digest of the plan's, as far as equal ones are equal."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("code", plan.code)
    return file.getvalue()
