"""The values that a program gives its dispatches, recorded in one run, so that scripts are checked with them.

Drawn values miss what real programs do: results of a whole layer that are below 0, sums of thousands, indices in order.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from mlir_sched.compiler.reasons import reason
from mlir_sched.compiler.worker_process import JobError, run_isolated
from mlir_sched.errors import CompilerError, UserError
from mlir_sched.payload import TensorSpec
from mlir_sched.processes.limits import ChildError
from mlir_sched.processes.memory import machine_memory_bytes
from mlir_sched.processes.temporary import session_folder
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.whole_program import calls_of
from mlir_sched.runner.checks.captured import Wanted
from mlir_sched.targets.target import Target
from mlir_sched.tasks.model import EXTRACTION_LIMITS
from mlir_sched.tasks.task import Task

MOST_BYTES = min(2**30, machine_memory_bytes() // 16)
"""Most bytes of recorded values of a program; they lie in files, and the processes that use some of them keep these."""
MOST_SHARE = 0.05
"""Largest share of a run's minutes that recording may take, all variants together. A variant takes about as long as the
program took to be compiled and taken apart."""

_JOB = "mlir_sched.program.worker.capture:capture_values"


@dataclass
class ValueRecorder:
    """Records the values of one variant after the other, within seconds that they share.

    A process that resumes a run begins with all of them, as values are not kept with the records.

    Attributes:
        left_s: Seconds that recording may take from now on; infinite for a run by trials.
    """

    target: Target
    left_s: float

    @staticmethod
    def of(target: Target, run_s: float) -> ValueRecorder:
        """Return the recorder of a run that takes ``run_s`` seconds as a whole, infinite for a run by trials."""
        return ValueRecorder(target, MOST_SHARE * run_s)

    def with_values(self, built: BuiltVariant) -> BuiltVariant:
        """Return a variant whose tasks know the values that a run of the program passes to them.

        The variant stays as it is, with a note, where recording would take too much of the run or fails; on devices,
        whose dispatches get drawn values alone, it stays without one.
        """
        wanted = _wanted(built.model.tasks)
        if not (self.target.driver.on_host and wanted):
            return built
        if built.build_s > self.left_s:
            left = f"{max(0.0, self.left_s):.0f} s are left for that"
            return _noted(built, f"to record the program's own takes about {built.build_s:.0f} s, and {left}")
        begun_s = time.monotonic()
        try:
            captured = _captured(built, wanted, self.left_s)
        except (UserError, CompilerError, JobError, ChildError) as error:
            return _noted(built, f"to record the program's own fails: {reason(str(error))}")
        finally:
            self.left_s -= time.monotonic() - begun_s
        model = built.model
        tasks = [replace(t, captured=wanted[t.name].file) if t.name in captured else t for t in model.tasks]
        return replace(built, model=replace(model, tasks=tuple(tasks)))


def _captured(built: BuiltVariant, wanted: Mapping[str, Wanted], most_s: float) -> Collection[str]:
    """Write the values of a variant's dispatches within ``most_s`` seconds; return the dispatches that have any."""
    model = built.model
    limits = replace(EXTRACTION_LIMITS, timeout_s=min(EXTRACTION_LIMITS.timeout_s, most_s))
    captured: Collection[str] = run_isolated(
        model.flags, _JOB, model.path, built.variant.library, calls_of(model), wanted, limits=limits
    )
    return captured


def _tensors_of(task: Task) -> tuple[TensorSpec, ...]:
    """Return the inputs of a task that are no numbers."""
    return tuple(spec for spec in task.inputs if not spec.by_value)


def _wanted(tasks: Sequence[Task]) -> dict[str, Wanted]:
    """Return the tensors to record, those of large and then of rare dispatches first, as far as the limit allows."""
    folder = tempfile.mkdtemp(prefix="values-", dir=session_folder())
    wanted: dict[str, Wanted] = {}
    free = MOST_BYTES
    for task in sorted((task for task in tasks if task.dispatch), key=lambda task: (-_bytes(task), task.weight)):
        if _bytes(task) <= free:
            free -= _bytes(task)
            wanted[task.name] = Wanted(_tensors_of(task), f"{folder}/{task.key}.npz")
    return wanted


def _bytes(task: Task) -> int:
    return sum(spec.bytes for spec in _tensors_of(task))


def _noted(built: BuiltVariant, why: str) -> BuiltVariant:
    note = f"dispatches of the variant {built.variant.name} are checked with drawn values alone: {why}"
    return replace(built, model=replace(built.model, notes=(*built.model.notes, note)))
