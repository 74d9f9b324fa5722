"""The decision what to emit, taken by intervals: for a script, for flags, for a whole program.

Every function judges timings of one session. What is reported is measured in another one.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlir_sched.outcome import Timing

PLACEMENT = 1.01
"""Ratio that programs of equal code reach by the place they are loaded at; an interval does not hold it, because the
place stays the same for a session."""
MIN_GAIN = 1.02
"""Least speed-up worth a script."""
WORTH_IT = PLACEMENT
"""Least speed-up for which flags are emitted in place of none, or scripts in place of flags alone."""
NO_LOSS = 0.995
"""Ratio to the untuned program below which an emitted one is slower."""


def why_no_gain(timing: Timing) -> str:
    """Return why a script is not worth using, or an empty string when it is.

    Its speed-up has to reach :data:`MIN_GAIN`, and its whole interval to lie above :data:`PLACEMENT`.
    """
    if timing.ratio >= MIN_GAIN and timing.ratio_low > PLACEMENT:
        return ""
    return f"no gain: the best script is {shown(timing)} as fast as the untuned code"


def loses(timing: Timing) -> bool:
    """Say whether a program is not shown to be as fast as the untuned one: its interval begins below NO_LOSS."""
    return timing.ratio_low < NO_LOSS


def plainest_of_fastest(untuned: Mapping[str, Timing], scripted: Timing | None) -> str | None:
    """Return the untuned variant to emit, or None for the scripts.

    A variant comes in place of the default when its whole interval is above :data:`WORTH_IT`; of those that are not
    shown to be slower than the best such one the first is taken, so that noise chooses between equals as seldom as
    can be. Scripts come in place of it when their interval clears all untuned variants.

    Args:
        untuned: Timing of every untuned variant with its ratio to the first of them, the default.
        scripted: That of the program with scripts; None when there is none.
    """
    default, *_ = untuned
    worth = {name: timing for name, timing in untuned.items() if timing.ratio_low >= WORTH_IT}
    lowest = max((timing.ratio_low for timing in worth.values()), default=0.0)
    plainest = next((name for name, timing in worth.items() if timing.ratio_high >= lowest), default)
    return None if scripted is not None and _clears(scripted, untuned) else plainest


def shown(timing: Timing) -> str:
    """Return a speed-up with its interval for people: ``1.05x (1.03 to 1.06)``."""
    return f"{timing.ratio:.2f}x ({timing.ratio_low:.2f} to {timing.ratio_high:.2f})"


def _clears(timing: Timing, others: Mapping[str, Timing]) -> bool:
    """Say whether a program is faster than all others, by their whole intervals and by :data:`WORTH_IT`."""
    return all(timing.ratio_low >= max(WORTH_IT * other.ratio, other.ratio_high) for other in others.values())
