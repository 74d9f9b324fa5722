"""The untuned variants that are measured once more beside the program that is emitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlir_sched.emission.finalists import Winner
from mlir_sched.program.closing import CLEARLY_SLOWER
from mlir_sched.program.variant import BuiltVariant


def rivals_of(
    variant: BuiltVariant, winners: Iterable[Winner], others: Sequence[BuiltVariant]
) -> tuple[list[BuiltVariant], list[BuiltVariant]]:
    """Return the other variants that might be as fast as a variant with scripts, and those that are clearly slower.

    Args:
        variant: The variant that is emitted; it was timed.
        winners: Its scripts.
        others: The variants to divide into the two lists; they were timed, too.
    """
    limit_s = CLEARLY_SLOWER * expected_s(variant, winners)
    slow = [built for built in others if built.timing is not None and built.timing.median_s > limit_s]
    return [built for built in others if built not in slow], slow


def expected_s(variant: BuiltVariant, winners: Iterable[Winner]) -> float:
    """Return the seconds that a variant with scripts takes at most: its scripts and its other, untuned dispatches."""
    assert variant.timing is not None
    times = [(w.task.weight * w.untuned.median_s, w.task.weight * w.timing.median_s) for w in winners]
    rest = variant.timing.median_s - sum(untuned for untuned, _ in times)
    return max(0.0, rest) + sum(tuned for _, tuned in times)
