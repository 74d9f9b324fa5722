"""The time that the end of a run takes: the emitted program is compiled, compared with its rivals, and reported."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_sched.program.variant import BuiltVariant
from mlir_sched.runner import RacingOptions, SampleOptions
from mlir_sched.runner.protocol import WARM_CALL_S

CLEARLY_SLOWER = 2.0
"""A variant that took this many times the expected time of the emitted program is not measured again."""
SESSION_S = 1.0
"""Seconds that a session takes besides its calls: its process starts and loads the programs."""
CHECK_CALLS = 6
"""Calls per program that its checks take in a session, those that look for data races included."""
AFTER_S = 2.0
"""Seconds after the last session: the profile of the program and the report. Source: 1.1 s, a T5 encoder."""


def emission_s(built: Sequence[BuiltVariant], tuned: BuiltVariant, tuned_s: float, racing: RacingOptions) -> float:
    """Return about how many seconds it takes to emit a program.

    The proof takes as long as compiling and taking apart the variant took. One session decides, with all variants that
    may be as fast as the emitted program, and one reports. A variant that was not timed has no sessions.

    Args:
        built: All variants, the default first.
        tuned: The variant to emit.
        tuned_s: Seconds per call that it is expected to take.
        racing: The options of the sessions.
    """
    if tuned.timing is None:
        return tuned.build_s + AFTER_S
    default_s, *others_s = [b.timing.median_s for b in built if b.timing is not None] or [tuned_s]
    rivals_s = [seconds for seconds in others_s if seconds <= CLEARLY_SLOWER * tuned_s]
    deciding_s = session_s(racing, default_s, [tuned_s, *rivals_s])
    return tuned.build_s + deciding_s + session_s(racing, default_s, [tuned_s]) + AFTER_S


def session_s(racing: RacingOptions, default_s: float, others_s: Sequence[float]) -> float:
    """Return about how many seconds a session takes.

    Args:
        racing: Its options; the number of pairs is fixed.
        default_s: Seconds per call of the program that all others are compared with.
        others_s: Seconds per call of the others.
    """
    planned = [racing.planned_pairs(default_s + call_s) for call_s in others_s]
    samples = [count * (_sample_s(default_s) + _sample_s(s)) for count, s in zip(planned, others_s, strict=True)]
    return sum(max(racing.budget_s, seconds) for seconds in samples) + checking_s([default_s, *others_s])


def _sample_s(call_s: float) -> float:
    """Return the seconds per call of a sample, twice as many where it is one call after a further one that warms up."""
    return 2 * call_s if SampleOptions().least_s <= call_s < WARM_CALL_S else call_s


def checking_s(calls_s: Sequence[float]) -> float:
    """Return about how many seconds a session takes besides its samples, given the seconds per call of its programs."""
    return SESSION_S + CHECK_CALLS * sum(calls_s)
