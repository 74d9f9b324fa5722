"""Random search of measured candidates, over all their orders at once: it needs no seeds, and has no luck."""

import math
from collections.abc import Sequence


def draws_to_reach(seconds: Sequence[float], limit: float) -> int:
    """Return the median of the draws without replacement until a candidate takes at most ``limit``.

    Args:
        limit: At least the time of the fastest.

    Raises:
        ValueError: No candidate is that fast.
    """
    total, near = len(seconds), sum(each <= limit for each in seconds)
    if not near:
        raise ValueError(f"no candidate takes at most {limit} s")
    return next(n for n in range(1, total + 1) if 2 * math.comb(total - near, n) <= math.comb(total, n))


def expected_best(seconds: Sequence[float], count: int) -> float:
    """Return the geometric mean of the best of ``count`` values drawn without replacement, over all draws."""
    ordered, draws = sorted(seconds), math.comb(len(seconds), count)
    chances = (math.comb(len(seconds) - 1 - rank, count - 1) / draws for rank in range(len(seconds)))
    return math.exp(sum(chance * math.log(each) for chance, each in zip(chances, ordered, strict=True)))
