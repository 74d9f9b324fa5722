"""What the candidates of a search are timed in turns with: a fast script, where the untuned code is slow.

Without scripts a packed product takes 10 to 30 times as long as with them. A pair of a candidate and such code takes
five to ten times as long as a pair of two scripts, a busy machine disturbs it more often, and its two samples are
further apart in time.
"""

from dataclasses import dataclass, field

from mlir_sched.outcome import Timing
from mlir_sched.runner.program import Program
from mlir_sched.tasks.task import Task

SLOW_S = 8e-3
"""Seconds per call of untuned code from which a script takes its place: the time of a pair of short programs."""
FAST = 4.0
"""Least speed-up of such a script, by the lower end of its interval."""


@dataclass(frozen=True)
class Yardstick:
    """A script that the further candidates of its task are timed with, and whose results theirs are compared with.

    Attributes:
        program: The script's program, whose results were compared with those of the untuned code.
        ratio: How many times as fast as the untuned code it is, from a session that took no part in its choice. All
            ratios of further candidates have this factor.
    """

    program: Program
    ratio: float


@dataclass
class Yardsticks:
    """The yardsticks of a process, at most one per task, which stays: ratios to one program can be compared."""

    _chosen: dict[str, Yardstick | None] = field(default_factory=dict)  # by task key

    def of(self, task: Task) -> Yardstick | None:
        """Return the yardstick of a task; None where candidates are timed with the untuned code."""
        return self._chosen.get(task.key)

    def wants(self, task: Task, timing: Timing, untuned: Timing) -> bool:
        """Say whether a right program may become the yardstick of its task: there is none yet, and it is far faster.

        Args:
            timing: The program's time, with the ratio to the untuned code.
        """
        return task.key not in self._chosen and untuned.median_s >= SLOW_S and timing.ratio_low >= FAST

    def choose(self, task: Task, yardstick: Yardstick) -> None:
        """Time the further candidates of a task with a yardstick."""
        self._chosen[task.key] = yardstick

    def drop(self, task: Task) -> None:
        """Time the candidates of a task with the untuned code from now on, as its yardstick fails."""
        self._chosen[task.key] = None
