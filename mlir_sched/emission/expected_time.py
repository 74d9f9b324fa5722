"""How long the program that is emitted is expected to take."""

from __future__ import annotations

from collections.abc import Iterable

from mlir_sched.emission.finalists import Winner
from mlir_sched.program.variant import BuiltVariant


def expected_s(variant: BuiltVariant, winners: Iterable[Winner]) -> float:
    """Return the seconds that a variant with scripts takes at most: its scripts and its other, untuned dispatches."""
    times = [(w.task.weight * w.untuned.median_s, w.task.weight * w.timing.median_s) for w in winners]
    rest = variant.measured.median_s - sum(untuned for untuned, _ in times)
    return max(0.0, rest) + sum(tuned for _, tuned in times)
