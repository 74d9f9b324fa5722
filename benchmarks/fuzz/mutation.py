"""Damage to a file's content, as broken transfers, disks and editors do it."""

from __future__ import annotations

import numpy as np

LONGEST = 64
"""Most bytes that are overwritten, removed or doubled at once."""


def damaged(content: bytes, seed: int) -> bytes:
    """Return a content with one kind of damage at a random place; never the same content, unless it is empty."""
    rng = np.random.default_rng(seed)
    place, length = (int(rng.integers(most)) for most in (max(1, len(content)), LONGEST))
    before, part, after = content[:place], content[place : place + length + 1], content[place + length + 1 :]
    bits = bytes(byte ^ (1 << int(rng.integers(8))) for byte in part)
    ways = (
        before,
        before + bits[:1] + part[1:] + after,
        before + bits + after,
        before + rng.bytes(len(part)) + after,
        before + bytes(len(part)) + after,
        before + after,
        before + part + part + after,
    )
    chosen = ways[int(rng.integers(len(ways)))]
    return chosen if chosen != content else before
