"""The few ops of a program that still show a fault: parts of the program are tried, smaller and smaller ones."""

from collections.abc import Callable, Iterator, Sequence

MOST_TRIES = 60
"""Most parts that are tried: about ten halve a network of a thousand ops to the neighbourhood of one, three tries for
each, and the others drop single ops."""


def fewest(number: int, shows: Callable[[Sequence[int]], bool], tries: int = MOST_TRIES) -> list[int]:
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
