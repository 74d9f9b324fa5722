"""Which of several things are at fault, found by halving: what works together is kept together, or what fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
MOST_PARTS = 60
"""Most parts of things that :func:`fewest` tries: about ten halve a thousand things to the neighbourhood of one, three
tries for each, and the others drop single things."""


def most_tries(things: int) -> int:
    """Return the tries in which one thing of several is found to be at fault, twice the binary logarithm."""
    return 2 * max(things - 1, 0).bit_length()


def without_faults(
    things: Sequence[T], works: Callable[[Sequence[T]], bool], tries: int, kept: Sequence[T] = ()
) -> tuple[T, ...]:
    """Return, in their order, as many of some things as were found to work together.

    Of one thing at fault all others are returned, after :func:`most_tries` tries at most; where several are, or where a
    thing works only with another one, tries may end before the last things were tried, which are not returned then.

    Args:
        things: The things, which do not work together with ``kept``.
        works: Says whether things work together; it is never called with what it was called with before.
        tries: Most calls of ``works``.
        kept: What works and stays, in front of all others.
    """
    search = _Halving(works, tries)
    return search.extended(tuple(kept), tuple(things), fails=True)


@dataclass
class _Halving(Generic[T]):
    """A search under way, with the tries that are left."""

    works: Callable[[Sequence[T]], bool]
    tries: int

    def extended(self, good: tuple[T, ...], things: tuple[T, ...], *, fails: bool) -> tuple[T, ...]:
        """Return what works with as many further things as possible.

        Args:
            fails: Whether they are known not to work together with what works.
        """
        if not things:
            return good
        if not fails:
            if self.tries <= 0:
                return good
            self.tries -= 1
            if self.works((*good, *things)):
                return *good, *things
        if len(things) == 1:
            return good
        half = len(things) // 2
        more = self.extended(good, things[:half], fails=False)
        return self.extended(more, things[half:], fails=more == (*good, *things[:half]))


def fewest(number: int, shows: Callable[[Sequence[int]], bool], tries: int = MOST_PARTS) -> list[int]:
    """Return as few things as were found to show a fault that all of them show, in their order.

    First come halves, each of what is left: the first, the second, and the one in the middle. Then ever smaller parts
    of the rest are left out.

    Args:
        number: Number of the things, which are counted from 0.
        shows: Says whether some of them show the fault.
        tries: Most calls of ``shows``.
    """
    kept, tried = list(range(number)), set[tuple[int, ...]]()

    def try_(part: Sequence[int]) -> bool:
        if not 0 < len(part) < len(kept) or len(tried) >= tries or tuple(part) in tried:
            return False
        tried.add(tuple(part))
        return shows(part)

    while half := next(filter(try_, _halves(kept)), None):
        kept = half
    size = len(kept) // 2
    while size:
        rest = next(filter(try_, _without_parts(kept, size)), None)
        kept, size = (rest, min(size, len(rest) // 2)) if rest else (kept, size // 2)
    return kept


def _halves(things: Sequence[int]) -> Iterator[list[int]]:
    half = -(-len(things) // 2)
    for begin in (0, len(things) - half, (len(things) - half) // 2):
        yield list(things[begin : begin + half])


def _without_parts(things: Sequence[int], size: int) -> Iterator[list[int]]:
    for begin in range(0, len(things), size):
        yield [*things[:begin], *things[begin + size :]]
