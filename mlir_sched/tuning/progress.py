"""The progress that a tune reports to its caller: plain data, for a bar, a log and a test alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """The state of a run.

    Attributes:
        stage: What happens now, for a person.
        trials: Candidates tried so far.
        total: Candidates to try, 0 when the budget is in minutes or not known yet.
        elapsed_s: Seconds since the start.
        left_s: Estimated seconds to the end of the search; None when unknown.
        best: Speed-up of the best candidate so far by dispatch name, of the dispatches that have candidates.
        failures: Failed candidates so far by class.
    """

    stage: str
    trials: int = 0
    total: int = 0
    elapsed_s: float = 0.0
    left_s: float | None = None
    best: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)


ProgressCallback: TypeAlias = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Ignore the progress."""
    del progress
