"""Finds, for the arguments of a program, ranges in which every position stays inside of its tensor.

Narrower ranges of arguments give narrower intervals of what is computed from them, so what holds for a box of ranges
holds for every box inside. The search starts at a point where all limits hold and moves the ends outwards by bisection:
first of each argument alone, which says how far it could go, then of all together by the same part of that, so that
arguments that share a limit share the room, then of each alone again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mlir_sched.tasks.worker.integers.index_expressions import Argument, Expression, Intervals, leaves
from mlir_sched.tasks.worker.integers.intervals import Interval, intersection, is_empty, is_inside, type_range

Box = Mapping[int, Interval]
"""Ranges of arguments, by position."""
_SPLITS = 400
"""Most parts of an argument's range that are looked at for a first value. A limit between two constants needs one part
per bit of the argument, 64 at most; several such limits, some times that."""
_PARTS = 1 << 16
"""Parts of the room of arguments that share a limit, between which the room is divided."""


@dataclass(frozen=True, eq=False)
class Limit:
    """An integer that must lie between two numbers."""

    index: Expression
    allowed: Interval

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments that the integer is computed from, by position."""
        return tuple(sorted((e for e in leaves(self.index) if isinstance(e, Argument)), key=lambda e: e.position))

    def holds(self, box: Box) -> bool:
        """Say whether the integer lies between the numbers wherever the arguments lie in their ranges."""
        return is_inside(Intervals(box).of(self.index), self.allowed)

    def never_holds(self, box: Box) -> bool:
        """Say whether the integer lies outside of the numbers wherever the arguments lie in their ranges."""
        return is_empty(intersection(Intervals(box).of(self.index), self.allowed))


def solve(limits: Sequence[Limit], usual: Box) -> tuple[Box, tuple[Limit, ...]]:
    """Return ranges within which all limits hold that can be kept, and the limits that cannot, by the intervals.

    Args:
        usual: For every argument the range that it has without limits: also where an end is not limited.
    """
    free = {a.position: type_range(a.bits) for limit in limits for a in limit.arguments}
    binding = [limit for limit in limits if not limit.holds(free)]
    point = _first_point(binding, free)
    kept = [limit for limit in binding if limit.holds(_box_at(point))]
    box: dict[int, Interval] = {}
    for group in _groups(kept):
        box |= _grown(group, {p: v for p, v in point.items() if any(_concerns(limit, p) for limit in group)}, free)
    ranges = {p: _not_wider(found, free[p], usual[p], point[p]) for p, found in box.items()}
    return ranges, tuple(limit for limit in binding if limit not in kept)


def _box_at(point: Mapping[int, int]) -> dict[int, Interval]:
    return {position: (value, value) for position, value in point.items()}


def _concerns(limit: Limit, position: int) -> bool:
    return any(argument.position == position for argument in limit.arguments)


def _first_point(limits: Sequence[Limit], free: Box) -> dict[int, int]:
    """Return a value for every argument such that the limits hold that can, one argument after the other."""
    point = {position: max(0, min(interval[1], 0)) for position, interval in free.items()}
    for position in point:
        concerned = [limit for limit in limits if _concerns(limit, position)]
        if all(limit.holds(_box_at(point)) for limit in concerned):
            continue
        hopeful = [limit for limit in concerned if not limit.never_holds({**_box_at(point), position: free[position]})]
        while hopeful:
            found = _value_for(hopeful, position, point, free[position])
            if found is not None:
                point[position] = found
                break
            hopeful.pop()
    return point


def _value_for(limits: Sequence[Limit], position: int, point: Mapping[int, int], free: Interval) -> int | None:
    """Return the value of an argument closest to 0 for which limits hold, others at a point; None if none is found.

    A part of the range in which some limit never holds is left out, any other is halved (branch and bound).
    """
    waiting = [free]
    for _ in range(_SPLITS):
        if not waiting:
            return None
        part = min(waiting, key=lambda each: (max(each[0], -each[1], 0), each[1] - each[0], each[0] < 0))
        waiting.remove(part)
        box = {**_box_at(point), position: part}
        if any(limit.never_holds(box) for limit in limits):
            continue
        nearest = max(part[0], min(part[1], 0))
        if all(limit.holds({**box, position: (nearest, nearest)}) for limit in limits):
            return nearest
        if part[0] < part[1]:
            middle = (part[0] + part[1]) // 2
            waiting += [(part[0], middle), (middle + 1, part[1])]
    return None


def _groups(limits: Sequence[Limit]) -> list[list[Limit]]:
    """Return limits in groups: two limits that share an argument are in one group."""
    groups: list[list[Limit]] = []
    for limit in limits:
        shared = [group for group in groups if any(set(limit.arguments) & set(other.arguments) for other in group)]
        groups = [group for group in groups if group not in shared]
        groups.append([limit, *(other for group in shared for other in group)])
    return groups


def _grown(limits: Sequence[Limit], point: Mapping[int, int], free: Box) -> dict[int, Interval]:
    """Return ranges around a point in which limits hold, as wide as bisection makes them."""

    def holds(box: Box) -> bool:
        return all(limit.holds(box) for limit in limits)

    start = _box_at(point)
    alone = {position: _widened(position, start, free[position], holds) for position in point}
    part = Fraction(_last(lambda n: holds(_towards(start, alone, Fraction(n, _PARTS))), 0, _PARTS), _PARTS)
    box = _towards(start, alone, part)
    for position in point:
        box[position] = _widened(position, box, alone[position], holds)
    return box


def _widened(position: int, box: Box, limit: Interval, holds: Callable[[Box], bool]) -> Interval:
    """Return the widest range of one argument, within a limit, that keeps all limits while the others stay."""
    low, high = box[position]
    high = _last(lambda end: holds({**box, position: (low, end)}), high, limit[1])
    low = -_last(lambda end: holds({**box, position: (-end, high)}), -low, -limit[0])
    return low, high


def _towards(start: Box, end: Box, part: Fraction) -> dict[int, Interval]:
    """Return ranges whose ends have gone a part of the way, 0 to 1, from one box to a wider one."""
    return {
        position: (low - int((low - end[position][0]) * part), high + int((end[position][1] - high) * part))
        for position, (low, high) in start.items()
    }


def _last(holds: Callable[[int], bool], first: int, last: int) -> int:
    """Return the last number for which something holds that holds for the first one, and for none behind a gap."""
    if holds(last):
        return last
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if holds(middle) else (first, middle)
    return first


def _not_wider(found: Interval, free: Interval, usual: Interval, value: int) -> Interval:
    """Return a range whose unlimited ends are the usual ones; it still holds the value it was made around."""
    low = min(value, max(found[0], usual[0])) if found[0] == free[0] else found[0]
    high = max(value, min(found[1], usual[1])) if found[1] == free[1] else found[1]
    return low, high
