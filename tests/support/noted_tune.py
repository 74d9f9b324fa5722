"""``mlir-sched`` that notes what it evaluates, run as a program so that it can be killed.

Usage: ``python noted_tune.py LOG ARGUMENT...``. A line of LOG is the process id, the key of a task, and a digest of the
candidate or ``untuned``.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

from short_sessions import short_sessions

from mlir_sched.cli import main
from mlir_sched.evaluation.evaluator import CompileAndRun
from mlir_sched.outcome import Outcome
from mlir_sched.tasks.task import Task

LOG = Path(sys.argv[1])


class Noted(CompileAndRun):
    """An evaluator that notes untuned code and candidates when their outcomes are known, before these are stored."""

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        """Return the outcome of the task's untuned code."""
        outcome = super().untuned(task, following)
        note(task, "untuned")
        return outcome

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield the outcome of every script."""
        for index, outcome in super().evaluate(task, scripts, known):
            note(task, hashlib.sha256(scripts[index].encode()).hexdigest())
            yield index, outcome


def note(task: Task, what: str) -> None:
    """Write a line into the log."""
    with LOG.open("a") as log:
        log.write(f"{os.getpid()} {task.key} {what}\n")


if __name__ == "__main__":
    with short_sessions(), patch("mlir_sched.meter.CompileAndRun", Noted):
        sys.exit(main(sys.argv[2:]))
