"""What tasks would take at the best rates of similar tasks: in operations per second and in bytes per second.

Two tasks are similar when the caller gives them the same family, such as all matrix multiplications in f32. A family
reaches many operations per second with tasks that the arithmetic binds, and many bytes per second with tasks that the
memory binds. Each of both rates is a limit, as in the roofline model (Williams et al., CACM 2009), whose ceilings are
here those that the family has shown so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Demand:
    """What one call of a task computes and moves.

    Attributes:
        family: Tasks with equal families are similar: they are expected to reach the same rates.
        operations: Scalar operations, >= 0; 0 for a task that only moves data.
        moved_bytes: Bytes that are read and written, >= 0.
    """

    family: str
    operations: float
    moved_bytes: float

    def seconds(self, operations_per_s: float, bytes_per_s: float) -> float:
        """Return the seconds of a call at two rates, each > 0 or 0 where the family has none: the larger time."""
        compute_s = self.operations / operations_per_s if operations_per_s else 0.0
        move_s = self.moved_bytes / bytes_per_s if bytes_per_s else 0.0
        return max(compute_s, move_s)


def seconds_at_best_rates(tasks: Sequence[tuple[Demand | None, float | None]]) -> list[float]:
    """Return the seconds per call that each task would take at the best rates of its family, itself included.

    Args:
        tasks: Per task its demand, or None, and its best seconds per call so far, > 0, or None.

    Returns:
        Per task the seconds; 0 where no similar task has a time.
    """
    families: dict[str, list[tuple[Demand, float]]] = {}
    for demand, seconds in tasks:
        if demand is not None and seconds is not None:
            families.setdefault(demand.family, []).append((demand, seconds))
    rates = {family: _best_rates(members) for family, members in families.items() if len(members) > 1}
    return [
        demand.seconds(*rates[demand.family]) if demand is not None and demand.family in rates else 0.0
        for demand, _ in tasks
    ]


def _best_rates(members: Sequence[tuple[Demand, float]]) -> tuple[float, float]:
    """Return the highest operations per second and the highest bytes per second of the tasks of a family."""
    return (
        max(demand.operations / seconds for demand, seconds in members),
        max(demand.moved_bytes / seconds for demand, seconds in members),
    )
