"""Compiles random networks under every plan that is offered, in warm worker processes, and judges them by NumPy."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.folders import ROOT
from benchmarks.fuzz.comparison import Expected
from benchmarks.fuzz.networks.generator import RandomNetwork
from benchmarks.fuzz.networks.judgements import Fate, NetworkJudgement, PlanJudgement, cause
from benchmarks.fuzz.networks.worker import Ran
from benchmarks.fuzz.programs import RandomProgram
from mlir_sched.compiler.worker_process import JobError, WorkerLimits
from mlir_sched.compiler.worker_set import WorkerSet
from mlir_sched.errors import CompilerError, FailureClass, MlirSchedError, ScriptError, UserError
from mlir_sched.library import RewriteScript
from mlir_sched.processes.child import ChildCrashError
from mlir_sched.processes.limits import ChildError, ChildMemoryError
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.building import Attempt
from mlir_sched.program.plan import Plan
from mlir_sched.program.repair import NO_REPAIR
from mlir_sched.program.rewrites.pipeline import StagedSite
from mlir_sched.program.rewrites.repair.repaired import REPAIRED
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.mending import Mending
from mlir_sched.program.variants.rewritten import ALL, flagged_variants
from mlir_sched.program.worker.rewriting import RewrittenPlans
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model

LIMITS = WorkerLimits(timeout_s=120.0)
"""Limits of a job; a program is compiled in a second, or in ten beside much other work."""
TOGETHER = 8
"""Most programs that are compiled together: one that is not compiled costs the others a second compilation."""
WORKERS = 4
"""Processes that wait for jobs, each with flags of its own; one works at a time."""
KEPT_SITES = "kept sites"
"""What stands beside the rewrites of a plan that leaves some of its sites as they are."""
_APPLYING = "mlir_sched.program.worker.rewriting:script_where_it_applies"
_SCRIPT = "mlir_sched.program.worker.rewriting:script_of"
_SITES = "mlir_sched.program.worker.rewriting:sites_of"
_OFFERED = "benchmarks.fuzz.networks.worker:offered"
_RUN = "benchmarks.fuzz.networks.worker:compiled_and_run"
_TOGETHER = "benchmarks.fuzz.networks.worker:run_together"
Rewritten = tuple[Plan, RewriteScript | None]
"""A plan, and the script of its rewrites if it has any."""
NOTHING = RewrittenPlans((), {}, {}, (), NO_REPAIR)
"""What can be made of a program to which no plan applies."""


@dataclass(frozen=True)
class Case:
    """A program that is judged.

    Attributes:
        program: The program.
        path: Its file.
    """

    program: RandomProgram
    path: Path

    @cached_property
    def expected(self) -> Expected:
        """What right code returns."""
        return Expected(self.program)


class Laboratory:
    """Judges networks; a context manager, which holds the worker processes.

    Args:
        flags: Whether programs are compiled with IREE's own flags, too, which compete in a run.
    """

    def __init__(self, target: Target, folder: Path, *, flags: bool = False) -> None:
        self._target, self._folder = target, folder
        self._kind = target_kind(target.name).rewrites
        self._own = [variant.plan for variant in flagged_variants(target)][: None if flags else 1]
        self._workers = WorkerSet(WORKERS)

    @staticmethod
    @contextmanager
    def open(target: Target, *, flags: bool = False) -> Iterator[Laboratory]:
        """Yield a laboratory with a temporary folder, whose workers find this package; arguments as of the class."""
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        with temporary_folder() as folder, patch.dict(os.environ, PYTHONPATH=paths):
            laboratory = Laboratory(target, Path(folder), flags=flags)
            try:
                yield laboratory
            finally:
                laboratory._workers.close()

    def judge(self, network: RandomNetwork, seed: int) -> NetworkJudgement:
        """Return what becomes of a network under IREE's own code and every plan that is offered.

        Where IREE does not compile its default code, no plan counts, as in a run.

        Raises:
            UserError: What a distribution registers cannot be loaded.
        """
        case = self._case(network)
        made, lost = NOTHING, list[PlanJudgement]()
        try:
            made = self._offered(case.path)
        except UserError:
            if self._judged(case, self._own[0], None).fate is not Fate.REJECTED:
                raise
        except (JobError, ChildError, CompilerError) as error:
            lost = [_without_script(ALL, error)]
        own: list[Rewritten] = [(plan, None) for plan in self._own]
        right = self._right_by_flags(case, [*own, *made.plans])
        first, *flagged = (
            _judgement(plan, None, Fate.RIGHT) if plan in right else self._judged(case, plan, None)
            for plan in self._own
        )
        found = [] if first.fate is Fate.REJECTED else [*flagged, *lost, *self._rewritten(case, first, made, right)]
        return NetworkJudgement(seed, network.size, (first, *found))

    def judge_plan(self, network: RandomNetwork, plan: Plan) -> PlanJudgement:
        """Return what becomes of a network under one plan.

        Raises:
            MlirSchedError: The plan does not apply to the network.
        """
        case = self._case(network)
        script = self._call(self._target.flags, _APPLYING, str(case.path), self._kind, plan) if plan.steps else None
        if plan.steps and script is None:
            raise ScriptError(f"{plan.name} does not apply to the network")
        judged = self._judged(case, plan, script)
        return _beside(judged, self._judged(case, Plan(), None)) if judged.fate is Fate.WRONG else judged

    def plans(self, network: RandomNetwork) -> dict[str, Plan]:
        """Return the plans for a network that IREE reads, by name.

        Raises:
            MlirSchedError: IREE does not read it.
        """
        offered = self._offered(self._case(network).path).plans
        return {plan.name: plan for plan in (*self._own, *(plan for plan, _ in offered))}

    def _case(self, network: RandomNetwork) -> Case:
        program, path = network.program, self._folder / "network.mlir"
        path.write_text(program.text)
        return Case(program, path)

    def _rewritten(
        self, case: Case, first: PlanJudgement, made: RewrittenPlans, right: Collection[Plan]
    ) -> list[PlanJudgement]:
        """Return what becomes of a program that is repaired, if it needs that, and under every plan with rewrites.

        Args:
            first: What became of IREE's default code.
            made: What can be made of the program.
            right: Plans that are known to be right.
        """
        found = [_without_script(name, CompilerError(text)) for name, text in made.refused.items()]
        found += [_without_script(name, JobError(text)) for name, text in made.raised.items()]
        if made.repair.script is not None:
            first = self._judged(case, Plan(), made.repair.script)
            found.append(first)
        for plan, script in made.plans:
            judged = [_judgement(plan, script, Fate.RIGHT)] if plan in right else self._with_mended(case, plan, script)
            found += [_beside(each, first) for each in judged]
        return found

    def _right_by_flags(self, case: Case, programs: Sequence[Rewritten]) -> set[Plan]:
        """Return the plans of those programs that are right when they are compiled with others of the same flags."""
        groups: dict[tuple[str, ...], list[Rewritten]] = {}
        for each in programs:
            groups.setdefault(self._flags(each[0]), []).append(each)
        return {plan for group in groups.values() for plan in self._right(case, group)}

    def _offered(self, path: Path) -> RewrittenPlans:
        """Return the plans that are offered for a program, those with other algorithms among them."""
        cores = self._target.cores
        found: RewrittenPlans = self._call(self._target.flags, _OFFERED, str(path), self._kind, cores)
        return found

    def _right(self, case: Case, programs: Sequence[Rewritten]) -> list[Plan]:
        """Return the plans of those programs that are right when they are compiled together.

        What becomes of the others is not said; of programs that are not compiled together the halves are tried.

        Args:
            programs: Programs that are compiled with the same flags.
        """
        if len(programs) < 2:
            return []
        if len(programs) <= TOGETHER:
            flags, scripts = self._flags(programs[0][0]), [script for _, script in programs]
            with suppress(MlirSchedError):
                ran = self._call(flags, _TOGETHER, str(case.path), scripts, case.program.arrays)
                each = zip(programs, ran, strict=True)
                return [plan for (plan, _), outputs in each if not case.expected.difference(outputs)]
        middle = len(programs) // 2
        return [*self._right(case, programs[:middle]), *self._right(case, programs[middle:])]

    def _with_mended(self, case: Case, plan: Plan, script: RewriteScript | None) -> list[PlanJudgement]:
        """Return what becomes of a program under a plan, and without the sites that keep it from being compiled."""
        whole, path, parts = self._judged(case, plan, script), str(case.path), dict[Plan, PlanJudgement]()
        if whole.fate is not Fate.REJECTED:
            return [whole]

        def attempt(part: Plan) -> Attempt:
            try:
                script = self._call(self._target.flags, _SCRIPT, path, self._kind, part)
            except MlirSchedError as error:
                return Attempt(None, cause(str(error)))
            parts[part] = self._judged(case, part, script)
            if parts[part].fate is Fate.REJECTED:
                return Attempt(None, parts[part].detail)
            return Attempt(BuiltVariant(Variant(part, script), Model(path, (), (), ()), b"", None, ()))

        def placed(whole: Plan) -> tuple[StagedSite, ...]:
            found: tuple[StagedSite, ...] = self._call(self._target.flags, _SITES, path, self._kind, whole)
            return found

        mended = Mending(Variant(plan, script), placed, attempt, lambda: True).mended(whole.detail)
        return [whole, parts[mended.variant.plan]] if mended else [whole]

    def _judged(self, case: Case, plan: Plan, script: RewriteScript | None) -> PlanJudgement:
        """Return what becomes of a program under a plan, judged alone."""
        made = partial(_judgement, plan, script)
        try:
            ran: Ran = self._call(self._flags(plan), _RUN, str(case.path), script, case.program.arrays)
        except (JobError, ChildError) as error:
            return made(*_failed(error))
        if ran.outputs is None:
            ours = ran.failure is FailureClass.SCRIPT_ERROR
            return made(Fate.INTERNAL if ours else Fate.REJECTED, f"{ran.failure}: {cause(ran.error)}")
        difference = case.expected.difference(ran.outputs)
        if difference:
            return made(Fate.MISCOMPILED if script is None else Fate.WRONG, difference)
        return made(Fate.RIGHT)

    def _flags(self, plan: Plan) -> tuple[str, ...]:
        """Return the compiler flags of the target and of a plan, each once."""
        return tuple(dict.fromkeys((*self._target.flags, *plan.flags)))

    def _call(self, flags: tuple[str, ...], job: str, *arguments: Any) -> Any:
        """Return the result of a job in a worker with some flags; raises what ``Worker.wait`` raises."""
        worker = self._workers.borrow(flags)
        assert worker is not None, "one job runs at a time"
        try:
            worker.submit(job, *arguments)
            result = worker.wait(LIMITS)
        except ChildError:
            self._workers.end(worker)
            raise
        except BaseException:
            self._workers.give_back(worker)
            raise
        if worker.memory_bytes() > LIMITS.recycle_bytes:
            self._workers.end(worker)
        else:
            self._workers.give_back(worker)
        return result


def _judgement(plan: Plan, script: RewriteScript | None, fate: Fate, detail: str = "") -> PlanJudgement:
    """Return a judgement of the program that a plan leads to, or that is repaired and not rewritten."""
    if script is not None and not plan.steps:
        return PlanJudgement(REPAIRED, (REPAIRED,), fate, detail)
    names = tuple(step.name for step in plan.whole.steps)
    return PlanJudgement(plan.name, (*names, KEPT_SITES) if plan.kept else names, fate, detail)


def _beside(judged: PlanJudgement, default: PlanJudgement) -> PlanJudgement:
    """Return a judgement that takes wrong numbers for IREE's where its default code has some, too."""
    if judged.fate is Fate.WRONG and default.fate is Fate.MISCOMPILED:
        return PlanJudgement(judged.plan, judged.rewrites, Fate.MISCOMPILED, judged.detail)
    return judged


def _without_script(name: str, error: JobError | ChildError | CompilerError) -> PlanJudgement:
    """Return what became of a plan whose script cannot be made."""
    return PlanJudgement(name, (name,), *_failed(error))


def _failed(error: JobError | ChildError | CompilerError) -> tuple[Fate, str]:
    """Return what became of a plan whose job failed: a process that is lost, and what IREE rejects, are IREE's."""
    if isinstance(error, JobError):
        return Fate.INTERNAL, cause(str(error))
    if isinstance(error, CompilerError):
        return Fate.REJECTED, f"{FailureClass.COMPILE_ERROR}: {cause(str(error))}"
    return Fate.REJECTED, f"{_class_of(error)}: {error}"


def _class_of(error: ChildError) -> FailureClass:
    if isinstance(error, ChildCrashError):
        return FailureClass.COMPILE_CRASH
    return FailureClass.COMPILE_MEMORY if isinstance(error, ChildMemoryError) else FailureClass.COMPILE_TIMEOUT
