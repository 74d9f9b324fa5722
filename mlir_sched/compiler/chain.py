"""Chains: one call that makes a task's dispatch several times in a row, for timing short dispatches on several threads.

Within a call of a program IREE's workers stay awake, and one dispatch follows the last within 2 us. A call that makes a
single dispatch wakes the workers and waits for them: MobileNet-V2's dispatches of 16 to 50 us on two cores of an
Emerald Rapids take 65 to 130 us in a call of their own.

Every dispatch of a chain reads constants of its own: each buffer of constants holds one copy per dispatch.
"""

from __future__ import annotations

TASK = "task"
"""Name of the function that makes one dispatch: the entry of a task's program."""
ENTRY = "chain"
"""Name of the function that makes several, beside it."""
LENGTH = 8
"""Dispatches of a chain."""
ALIGNMENT = 64
"""Bytes that a dispatch's buffers are aligned to."""


def stride_bytes(size: int) -> int:
    """Return how many bytes lie between two copies of a constant of ``size`` bytes."""
    return -(-size // ALIGNMENT) * ALIGNMENT
