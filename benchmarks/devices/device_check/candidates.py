"""The first part of the check: random candidates of every sketch compute what IREE's own code computes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.search.space_audit import SketchAudit, audit_task
from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import MlirSchedError
from mlir_sched.program.variants.tunability import can_tune
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract


@dataclass(frozen=True)
class Numbers:
    """What random candidates computed.

    Attributes:
        audits: One per program and sketch.
        problems: Why dispatches could not be sampled.
        missing: Programs for which no time was left.
    """

    audits: tuple[SketchAudit, ...]
    problems: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def failed(self) -> int:
        """Candidates that do not compile, do not run or compute something else."""
        return sum(audit.failed for audit in self.audits)

    @property
    def sampled(self) -> int:
        """Candidates that were tried."""
        return sum(audit.sampled for audit in self.audits)


def sample_spaces(paths: Sequence[Path], target: Target, *, samples: int, seed: int, until_s: float) -> Numbers:
    """Sample the spaces of programs.

    Args:
        samples: Distinct legal traces per dispatch and sketch.
        until_s: Time (``time.monotonic``) after which no further program is begun.
    """
    audits, problems, missing = list[SketchAudit](), list[str](), list[str]()
    space = Space.default(target)
    with CompilerPool(target.flags) as pool, Runner(RunnerOptions.for_device(target.driver)) as runner:
        for path in paths:
            if time.monotonic() >= until_s:
                missing.append(path.stem)
                continue
            try:
                for task in extract(path, target).tasks:
                    if can_tune(task, space, target):
                        audits += audit_task(path.stem, task, target, pool, runner, (4 * samples, samples), seed)
                    else:
                        problems.append(f"{path.stem} {task.name}: {task.not_tunable or 'no module schedules it'}")
            except MlirSchedError as error:
                problems.append(f"{path.stem}: {error}")
    return Numbers(tuple(audits), tuple(problems), tuple(missing))
