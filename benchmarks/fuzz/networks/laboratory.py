"""Compiles random networks under every plan that is offered, in warm worker processes, and judges them by NumPy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.folders import ROOT
from benchmarks.fuzz.comparison import Expected, expected
from benchmarks.fuzz.networks.generator import RandomNetwork
from benchmarks.fuzz.networks.judgements import Fate, NetworkJudgement, PlanJudgement, cause
from benchmarks.fuzz.networks.worker import Ran
from benchmarks.fuzz.programs import RandomProgram
from mlir_sched.compiler.worker_process import JobError, WorkerLimits
from mlir_sched.compiler.worker_set import WorkerSet
from mlir_sched.errors import CompilerError, FailureClass, MlirSchedError, ScriptError
from mlir_sched.library import RewriteScript
from mlir_sched.processes.child import ChildCrashError
from mlir_sched.processes.limits import ChildError, ChildMemoryError
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.building import Attempt
from mlir_sched.program.plan import Plan, Site
from mlir_sched.program.repair import ProgramRepair
from mlir_sched.program.rewrites.pipeline import StagedSite
from mlir_sched.program.rewrites.repair.repaired import REPAIRED
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.mending import Mending
from mlir_sched.program.variants.rewritten import ALL, flagged_variants
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model

LIMITS = WorkerLimits(timeout_s=60.0)
"""Limits of a job; a program is compiled in about a second."""
WORKERS = 4
"""Processes that wait for jobs, each with flags of its own; one works at a time."""
KEPT_SITES = "kept sites"
"""What stands beside the rewrites of a plan that leaves some of its sites as they are."""
_PLANS = "mlir_sched.program.worker.rewriting:rewritten_plans"
_ALGORITHMS = "mlir_sched.program.worker.rewriting:other_algorithms"
_REPAIR = "mlir_sched.program.worker.rewriting:repair_of"
_APPLYING = "mlir_sched.program.worker.rewriting:script_where_it_applies"
_SCRIPT = "mlir_sched.program.worker.rewriting:script_of"
_SITES = "mlir_sched.program.worker.rewriting:sites_of"
_RUN = "benchmarks.fuzz.networks.worker:compiled_and_run"
Rewritten = tuple[Plan, RewriteScript | None]
"""A plan, and the script of its rewrites if it has any."""


@dataclass(frozen=True)
class Case:
    """A program that is judged.

    Attributes:
        program: The program.
        path: Its file.
        expected: What right code returns.
    """

    program: RandomProgram
    path: Path
    expected: Expected


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

        Where IREE does not compile its default code, no plan is tried, as in a run.
        """
        case = self._case(network)
        default, *flagged = self._own
        first = self._judged(case, default, None)
        found = [first]
        if first.fate is not Fate.REJECTED:
            found += [self._judged(case, plan, None) for plan in flagged]
            found += self._rewritten(case, first)
        return NetworkJudgement(seed, network.size, tuple(found))

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
        offered = [plan for plan, _ in self._offered(self._case(network).path)[0]]
        return {plan.name: plan for plan in (*self._own, *offered)}

    def _case(self, network: RandomNetwork) -> Case:
        program, path = network.program, self._folder / "network.mlir"
        path.write_text(program.text)
        return Case(program, path, expected(program))

    def _rewritten(self, case: Case, first: PlanJudgement) -> list[PlanJudgement]:
        """Return what becomes of a program that is repaired, if it needs that, and under every plan with rewrites."""
        try:
            plans, found = self._offered(case.path)
            repair: ProgramRepair = self._call(self._target.flags, _REPAIR, str(case.path))
        except (JobError, ChildError, CompilerError) as error:
            return [_without_script(ALL, error)]
        if repair.script is not None:
            first = self._judged(case, Plan(), repair.script)
            found.append(first)
        judged = (each for rewritten in plans for each in self._with_mended(case, *rewritten))
        return [*found, *(_beside(each, first) for each in judged)]

    def _offered(self, path: Path) -> tuple[list[Rewritten], list[PlanJudgement]]:
        """Return the plans that are offered for a program, and what became of those whose script cannot be made.

        Beside every plan with a choice of algorithms comes each of its sites with the other one, and all of them.
        """
        flags = self._target.flags
        plans: tuple[tuple[Plan, RewriteScript], ...]
        refused: dict[str, str]
        raised: dict[str, str]
        sites: tuple[Site, ...]
        plans, refused, raised, sites, *_ = self._call(flags, _PLANS, str(path), self._kind, self._target.cores)
        failed = [_without_script(name, CompilerError(text)) for name, text in refused.items()]
        failed += [_without_script(name, JobError(text)) for name, text in raised.items()]
        found = list[Rewritten](plans)
        for plan, _ in plans:
            own = [site for site in sites if plan.has_choice(site)]
            if own:
                one_by_one = self._call(flags, _ALGORITHMS, str(path), self._kind, plan)
                found += [(plan.with_algorithms([site]), script) for site, script in one_by_one]
            if len(own) > 1:
                together = plan.with_algorithms(own)
                try:
                    found.append((together, self._call(flags, _SCRIPT, str(path), self._kind, together)))
                except (JobError, CompilerError) as error:
                    failed.append(_without_script(together.name, error))
        return found, failed

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
        repaired = script is not None and not plan.steps
        names = (REPAIRED,) if repaired else tuple(step.name for step in plan.whole.steps)
        names = (*names, KEPT_SITES) if plan.kept else names

        def made(fate: Fate, detail: str = "") -> PlanJudgement:
            return PlanJudgement(REPAIRED if repaired else plan.name, names, fate, detail)

        flags = tuple(dict.fromkeys((*self._target.flags, *plan.flags)))
        try:
            ran: Ran = self._call(flags, _RUN, str(case.path), script, case.program.arrays)
        except (JobError, ChildError) as error:
            return made(*_failed(error))
        if ran.outputs is None:
            ours = ran.failure is FailureClass.SCRIPT_ERROR
            return made(Fate.INTERNAL if ours else Fate.REJECTED, f"{ran.failure}: {cause(ran.error)}")
        difference = case.expected.difference(ran.outputs)
        if difference:
            return made(Fate.WRONG if names else Fate.MISCOMPILED, difference)
        return made(Fate.RIGHT)

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
