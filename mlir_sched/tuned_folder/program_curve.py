"""The tuning curve of a whole program: its estimated time against the time of the run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CurvePoint:
    """The estimated time of a program at one moment of a run.

    Attributes:
        run_s: Seconds of the run until then, those of earlier processes included.
        trials: Candidates tried for the program until then.
        program_s: Seconds that the program is expected to take with the best scripts so far: its dispatches, each
            measured alone, and what the untuned program takes outside of them.
    """

    run_s: float
    trials: int
    program_s: float


@dataclass(frozen=True)
class ProgramCurve:
    """The estimates of one program, in the order of its rounds.

    Attributes:
        variant: Name of the program's variant.
        estimates: One before the first candidate, then one after every round.
    """

    variant: str
    estimates: tuple[CurvePoint, ...]
