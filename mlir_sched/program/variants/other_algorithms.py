"""Other algorithms for sites of a variant: what each changes in the program's dispatches, and the program with some.

An algorithm is judged in the program that it is for: the dispatches that it takes away against those that it brings,
each with its best script. A part that is cut out of the program may be compiled to other dispatches than inside.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from mlir_sched.compiler.worker_process import run_isolated
from mlir_sched.errors import MlirSchedError
from mlir_sched.library import RewriteScript
from mlir_sched.library.library import build_library
from mlir_sched.program.building import build_variant
from mlir_sched.program.plan import Site
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.programs import Programs
from mlir_sched.program.variants.rewritten import planned_variant
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS, extract
from mlir_sched.tasks.model import EXTRACTION_LIMITS
from mlir_sched.tasks.task import Task
from mlir_sched.tensors.parameters import ParameterFile

EXTRACTIONS = 2
"""Programs that are taken apart at the same time."""
_SCRIPTS = "mlir_sched.program.worker.rewriting:other_algorithms"


@dataclass(frozen=True)
class OtherAlgorithm:
    """Another algorithm for a site of a variant's program.

    Attributes:
        gone: By task key, how many calls fewer the program makes per run with the algorithm, > 0.
        made: The tasks that it calls more often; the weight of each is the number of further calls, > 0.
        further_bytes: Bytes of weights that calls read beyond those of the program; below 0 where they read fewer.
    """

    site: Site
    gone: Mapping[str, int]
    made: tuple[Task, ...]
    further_bytes: int = 0

    @property
    def name(self) -> str:
        """Name of the algorithm, with the site's shape."""
        return self.site.other

    @property
    def keys(self) -> frozenset[str]:
        """The keys of all tasks that it changes the number of calls of."""
        return frozenset(self.gone) | {task.key for task in self.made}

    def gone_s(self, call_s: Mapping[str, float]) -> float:
        """Return the seconds per run of the program that the calls take which the algorithm takes away."""
        return sum(calls * call_s.get(key, 0.0) for key, calls in self.gone.items())

    def made_s(self, call_s: Mapping[str, float]) -> float:
        """Return the seconds per run of the program that the calls take which the algorithm brings."""
        return sum(task.weight * call_s.get(task.key, 0.0) for task in self.made)

    def saved_s(self, call_s: Mapping[str, float]) -> float:
        """Return the seconds per run of the program that the algorithm saves; below 0 where it costs time.

        Args:
            call_s: Seconds per call by task key; a task whose seconds are not known counts as none.
        """
        return self.gone_s(call_s) - self.made_s(call_s)


class OtherAlgorithms(Protocol):
    """Finds other algorithms for sites of a program, and puts a program with some of them together."""

    def alternatives(self, built: BuiltVariant) -> tuple[OtherAlgorithm, ...]:
        """Return the other algorithms for a variant's program; see :meth:`Algorithms.alternatives`."""

    def compose(self, built: BuiltVariant, sites: Sequence[Site]) -> BuiltVariant:
        """Return a variant with another algorithm for some sites; see :meth:`Algorithms.compose`."""


@dataclass(frozen=True)
class Algorithms:
    """The algorithms that sites of a model's variants may have.

    Attributes:
        reference: A variant that was timed, which composed programs are checked against and timed with.
        times: Opens what says how long programs take.
        sites: The sites of the model that another algorithm can compute in some variants.
    """

    path: Path
    target: Target
    reference: BuiltVariant
    times: Callable[[], AbstractContextManager[Programs]]
    sites: tuple[Site, ...] = ()
    parameters: tuple[ParameterFile, ...] = ()

    def alternatives(self, built: BuiltVariant) -> tuple[OtherAlgorithm, ...]:
        """Return the other algorithms for a variant's program.

        A program that IREE cannot compile with an algorithm has no such alternative. Short programs that run in the
        calling thread of a run on several have none, and neither have programs whose algorithms are chosen.

        Raises:
            MlirSchedError: IREE fails on the program.
        """
        plan = built.variant.plan
        if not any(map(plan.has_choice, self.sites)) or plan.local_sync or plan.algorithms:
            return ()
        kind = target_kind(self.target.name).rewrites
        scripts: tuple[tuple[Site, RewriteScript], ...] = run_isolated(
            self.target.flags, _SCRIPTS, str(self.path), kind, plan, limits=EXTRACTION_LIMITS
        )
        with ThreadPoolExecutor(EXTRACTIONS) as pool:
            found = pool.map(lambda script: self._alternative(built, *script), scripts)
            return tuple(alternative for alternative in found if alternative is not None)

    def compose(self, built: BuiltVariant, sites: Sequence[Site]) -> BuiltVariant:
        """Return a variant with another algorithm for some sites, compiled and timed without scripts.

        Args:
            sites: Those of its alternatives that are chosen, at least one.

        Raises:
            MlirSchedError: IREE does not compile the program.
        """
        variant = planned_variant(self.path, self.target, built.variant.plan.base.with_algorithms(sites))
        reference, known = self.reference.model, built.model.tasks
        composed = build_variant(self.path, self.target, variant, self.parameters, reference.not_run, known)
        composed = replace(composed, model=composed.model.judged_as(reference))
        with self.times() as times:
            (_, timed), _ = times.time([self.reference, composed])
        return timed

    def _alternative(self, built: BuiltVariant, site: Site, script: RewriteScript) -> OtherAlgorithm | None:
        library = build_library([], script)
        flags = (*TASK_FLAGS, *built.variant.plan.with_algorithms([site]).flags)
        try:
            model = extract(
                self.path,
                self.target,
                flags,
                library,
                parameters=self.parameters,
                not_run=self.reference.model.not_run,
                known=built.model.tasks,
            )
        except MlirSchedError:
            return None
        before = {task.key: task.weight for task in built.model.tasks}
        after = {task.key: task.weight for task in model.tasks}
        gone = {key: calls - after.get(key, 0) for key, calls in before.items() if calls > after.get(key, 0)}
        more = [(task, task.weight - before.get(task.key, 0)) for task in model.tasks]
        made = tuple(replace(task, weight=calls) for task, calls in more if calls > 0)
        return OtherAlgorithm(site, gone, made, model.weight_bytes - built.model.weight_bytes)
