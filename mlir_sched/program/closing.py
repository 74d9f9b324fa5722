"""The end of a run: what the emitted program is compared with before it is reported, and how long all of this takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir_sched.program.variant import BuiltVariant
from mlir_sched.runner import RunnerOptions

CLEARLY_SLOWER = 2.0
"""A variant that took this many times the expected time of the emitted program is not measured again."""
SESSION_S = 1.0
"""Seconds that a session takes besides its calls: its process starts and loads the programs."""
REFERENCE_CALLS, CHECK_CALLS = 3, 8
"""Calls that checks take in a session where calls are slow: of the program that all are compared with, unless another
process knows its results, and of every other one, those that look for data races and those after timing included."""
LOADING_CALLS = 2
"""Calls of each program whose loading is measured."""
AFTER_S = 2.0
"""Seconds after the last session, about twice what the profile of the program and the report take."""
SHORT_SESSION_S = 0.25
"""Most seconds of sampling per program in a short session, fewest pairs apart."""
FINALIST_S = 2.0
"""Seconds set aside for the finalists of a task, at least, in a run by time: about the mean of what they take in
networks of convolutions. Where they need more, fewer tasks have a choice."""


@dataclass(frozen=True)
class Rivals:
    """What the emitted program is measured beside in the session that decides.

    A session takes samples of all programs in pairs with one of them: two other programs are told apart only as far as
    the noise of this one allows. It is therefore the fastest untuned variant, which is the hardest to beat.

    Attributes:
        reference: The variant that the emitted program and the others are compared with: the fastest one, or the
            default where all variants are clearly slower than the emitted program.
        others: The other variants that may be as fast as the emitted program, the fastest first.
        slow: The variants that are clearly slower and not measured again.
        undisputed: Whether all variants are clearly slower.
    """

    reference: BuiltVariant
    others: tuple[BuiltVariant, ...]
    slow: tuple[BuiltVariant, ...]
    undisputed: bool = False

    @staticmethod
    def of(built: Sequence[BuiltVariant], tuned_s: float) -> Rivals:
        """Return the rivals of a program that is expected to take ``tuned_s`` seconds per call.

        Args:
            built: The variants, the default first; those that were not timed do not compete.
            tuned_s: Seconds per call of the program with scripts.
        """
        timed = [variant for variant in built if variant.timing is not None]
        near = sorted((variant for variant in timed if call_s(variant) <= CLEARLY_SLOWER * tuned_s), key=call_s)
        reference = near[0] if near else timed[0]
        others = tuple(variant for variant in near if variant is not reference)
        slow = tuple(v for v in timed if v is not reference and v not in others)
        return Rivals(reference, others, slow, undisputed=not near)

    def against(self, reference: BuiltVariant) -> Rivals:
        """Return the rivals with another reference; the former one, which cannot serve, is none of them."""
        others, slow = ([v for v in variants if v is not reference] for variants in (self.others, self.slow))
        return Rivals(reference, tuple(others), tuple(slow))

    def at_most(self, count: int) -> Rivals:
        """Return the rivals with the ``count`` fastest of the others; the rest counts as slow."""
        return replace(self, others=self.others[:count], slow=(*self.slow, *self.others[count:]))


def call_s(built: BuiltVariant) -> float:
    """Return the seconds per call of a variant that was timed."""
    return built.measured.median_s


def emission_s(
    built: Sequence[BuiltVariant], tuned: BuiltVariant, options: RunnerOptions, tuned_s: float | None = None
) -> float:
    """Return about how many seconds it takes to emit a program.

    The proof takes as long as compiling and taking apart the variant took. One session decides, with all variants that
    may be as fast as the emitted program, if there are any; loading is measured, and one session reports. Nothing is
    measured of a variant that was not run.

    Args:
        built: All variants, the default first.
        tuned_s: Seconds per call that it is expected to take; by default what it takes without scripts.
    """
    if not tuned.was_run:
        return tuned.build_s + AFTER_S
    tuned_s = call_s(tuned) if tuned_s is None else tuned_s
    sessions_s = sum(_sessions_s(built, options, tuned_s))
    return tuned.build_s + sessions_s + loading_s(options, [call_s(built[0]), tuned_s]) + AFTER_S


def least_emission_s(
    built: Sequence[BuiltVariant], tuned: BuiltVariant, options: RunnerOptions, tuned_s: float | None = None
) -> float:
    """Return about how many seconds it takes at least to emit a program; arguments as in :func:`emission_s`.

    Sessions have the fewest pairs, and loading is not measured. Where the default may be as fast as the emitted
    program, the session that decides is the only one.
    """
    if not tuned.was_run:
        return tuned.build_s + AFTER_S
    tuned_s = call_s(tuned) if tuned_s is None else tuned_s
    deciding_s, reporting_s = _sessions_s(built, options.capped(0.0), tuned_s)
    rivals = Rivals.of(built, tuned_s)
    is_enough = not rivals.undisputed and built[0] in (rivals.reference, *rivals.others)
    return tuned.build_s + deciding_s + (0.0 if is_enough else reporting_s) + AFTER_S


def _sessions_s(built: Sequence[BuiltVariant], options: RunnerOptions, tuned_s: float) -> tuple[float, float]:
    """Return about how many seconds the session that decides takes, if there is one, and the one that reports."""
    rivals, reporting_s = Rivals.of(built, tuned_s), session_s(options, call_s(built[0]), [tuned_s])
    if rivals.undisputed:
        return 0.0, reporting_s
    return session_s(options, call_s(rivals.reference), [tuned_s, *map(call_s, rivals.others)]), reporting_s


def finalist_s(options: RunnerOptions, untuned_s: float) -> float:
    """Return about how many seconds the finalists of a task take, at least: one script has a short report.

    Args:
        options: The options of the sessions; samples that have a process of their own take most of the time.
        untuned_s: Seconds per call of the task's untuned code.
    """
    return max(FINALIST_S, sampling_s(options.capped(SHORT_SESSION_S), untuned_s, [untuned_s]))


def session_s(options: RunnerOptions, reference_s: float, others_s: Sequence[float]) -> float:
    """Return about how many seconds a session takes; arguments as in :func:`sampling_s`."""
    return sampling_s(options, reference_s, others_s) + checking_s([reference_s, *others_s])


def sampling_s(options: RunnerOptions, reference_s: float, others_s: Sequence[float]) -> float:
    """Return about how many seconds the samples of a session take.

    Args:
        options: Its options; the number of pairs is fixed.
        reference_s: Seconds per call of the program that all others are compared with.
    """
    samples, racing = options.samples, options.racing
    pairs_s = [samples.sample_s(reference_s) + samples.sample_s(seconds) for seconds in others_s]
    return sum(max(racing.budget_s, racing.planned_pairs(pair_s) * pair_s) for pair_s in pairs_s)


def checking_s(calls_s: Sequence[float]) -> float:
    """Return about how many seconds a session takes besides its samples.

    Args:
        calls_s: Seconds per call of its programs, that which all others are compared with first.
    """
    reference_s, *others_s = calls_s
    return SESSION_S + REFERENCE_CALLS * reference_s + CHECK_CALLS * sum(others_s)


def loading_s(options: RunnerOptions, calls_s: Sequence[float]) -> float:
    """Return about how many seconds measuring the loading of programs takes, each in a process of its own.

    Args:
        options: How programs are run; nothing is measured off the CPU.
        calls_s: Seconds per call of the programs.
    """
    return sum(SESSION_S + LOADING_CALLS * call_s for call_s in calls_s) if options.driver.on_host else 0.0
