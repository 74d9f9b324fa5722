"""What pieces of work cost, as the record store keeps it: what a rule about time can be judged by."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class WorkKind(StrEnum):
    """What a run does for so many seconds."""

    BUILD = "build"
    """A plan of the program is compiled; the subject is its name."""
    ALGORITHMS = "algorithms"
    """Other algorithms for parts of a plan are compiled; the subject is the plan's name."""
    CAPTURE = "capture"
    """The values that a plan's dispatches get are recorded; the subject is the plan's name."""
    UNTUNED = "untuned"
    """The untuned code of a task is measured; the subject is the task's key, here and below."""
    ESTIMATE = "estimate"
    """Scripts of a task are compiled and their times are estimated."""
    CANDIDATES = "candidates"
    """Candidates of a task are compiled, checked and timed."""
    CHOICE = "choice"
    """The finalists of a task are measured."""
    REPORT = "report"
    """The script that was chosen for a task is measured once more."""
    EMISSION = "emission"
    """The program is put together, proven and measured; the subject is the name of its plan."""


@dataclass(frozen=True)
class WorkCost:
    """What one piece of work cost.

    Attributes:
        kind: What was done.
        subject: Key of the task, or name of the plan.
        count: Scripts or candidates, >= 1.
        seconds: Wall-clock seconds of the process that waited for the work, >= 0. What other processes did ahead of
            time, beside earlier work, is not in it.
    """

    kind: WorkKind
    subject: str
    count: int
    seconds: float
