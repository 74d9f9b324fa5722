"""What is worth emitting, by confidence intervals: a script, flags, the scripts of a whole program.

Every function but :func:`is_undisputed` judges timings of one session. Reported figures are measured in another
session.
"""

from collections.abc import Mapping

from mlir_sched.outcome import Timing
from mlir_sched.text import speedup

PLACEMENT = 1.01
"""Ratio between programs of equal code that the addresses they are loaded at may cause; a confidence interval does not
cover this effect, because the addresses stay the same during a session."""
MIN_GAIN = 1.02
"""Least speed-up worth a script."""
WORTH_IT = PLACEMENT
"""Least speed-up for which flags are emitted in place of none, or scripts in place of flags alone."""
FAR = 1.1
"""Ratio of the medians of two programs from which their intervals overlap in disturbed sessions only."""
UNDISPUTED = 1.5
"""Ratio to the fastest other program, measured in an earlier session, from which no session has to decide between the
two: a machine does not change by as much."""
NO_LOSS = 0.995
"""Ratio to the untuned program below which an emitted program counts as slower."""


def why_no_gain(timing: Timing) -> str:
    """Return why a script is not worth using, or an empty string when it is.

    Its speed-up has to reach :data:`MIN_GAIN`, and its whole interval to lie above :data:`PLACEMENT`.
    """
    if timing.ratio >= MIN_GAIN and timing.ratio_low > PLACEMENT:
        return ""
    return f"no gain: the best script is {speedup(timing)} as fast as the untuned code"


def is_disturbed(scripted: Timing, untuned: Mapping[str, Timing]) -> bool:
    """Say whether a program is far faster than all others by its median, and its interval does not show that.

    Programs so far apart are told apart by any undisturbed session; another one has to decide.
    """
    far = all(scripted.ratio >= FAR * other.ratio for other in untuned.values())
    return far and not _clears(scripted, untuned)


def is_undisputed(scripted: Timing, untuned: Mapping[str, Timing]) -> bool:
    """Say whether a program is far faster than all others, by whole intervals that need not be of the same session."""
    return all(scripted.ratio_low >= UNDISPUTED * other.ratio_high for other in untuned.values())


def loses(timing: Timing) -> bool:
    """Say whether a program is not shown to be as fast as the untuned one: its interval begins below NO_LOSS."""
    return timing.ratio_low < NO_LOSS


def plainest_of_fastest(untuned: Mapping[str, Timing], scripted: Timing | None) -> str | None:
    """Return the untuned variant to emit, or None for the scripts.

    A variant replaces the default when its whole interval is above :data:`WORTH_IT` and the default's interval. Of
    these variants, the first that is not shown to be slower than the best of them is returned, so that noise chooses
    between equal variants as rarely as possible. Scripts replace the variant when their interval clears all untuned
    variants.

    Args:
        untuned: Timing of every untuned variant with its ratio to the default, which comes first and has the ratio 1.
        scripted: Timing of the program with scripts; None without scripts.
    """
    default, *_ = untuned
    least = max(WORTH_IT, untuned[default].ratio_high)
    worth = {name: timing for name, timing in untuned.items() if timing.ratio_low >= least and name != default}
    lowest = max((timing.ratio_low for timing in worth.values()), default=0.0)
    plainest = next((name for name, timing in worth.items() if timing.ratio_high >= lowest), default)
    return None if scripted is not None and _clears(scripted, untuned) else plainest


def _clears(timing: Timing, others: Mapping[str, Timing]) -> bool:
    """Say whether a program is faster than all others, by whole intervals and by at least :data:`WORTH_IT`."""
    return all(timing.ratio_low >= max(WORTH_IT * other.ratio, other.ratio_high) for other in others.values())
