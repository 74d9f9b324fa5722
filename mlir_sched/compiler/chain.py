"""Chains: one call that makes a task's dispatch several times in a row, to time dispatches shorter than a call.

Within a call of a program IREE's workers stay awake, and one dispatch follows the last within 2 us. A call that makes a
single dispatch wakes the workers and waits for them. On a device whose dispatches nothing but the host's clock can
time, a call of one dispatch also takes its submission and the waiting for its end.

Every dispatch of a chain reads constants of its own: each buffer of constants holds one copy per dispatch.
"""

from dataclasses import dataclass

TASK = "task"
"""Name of the function that makes one dispatch: the entry of a task's program."""
ENTRY = "chain"
"""Name of the function that makes several, beside it."""
THREADS_LENGTH = 8
"""Dispatches of a chain on several threads of the CPU."""
DEVICE_LENGTH = 32
"""Dispatches of a chain on a device, whose calls take longer to submit and to wait for."""
ALIGNMENT = 64
"""Bytes that a dispatch's buffers are aligned to."""


@dataclass(frozen=True)
class Chain:
    """A chain that a task's program gets.

    Attributes:
        length: Its dispatches, >= 2.
        constants: Positions of the inputs that have a copy per dispatch.
    """

    length: int
    constants: tuple[int, ...] = ()


def stride_bytes(size: int) -> int:
    """Return how many bytes lie between two copies of a constant of ``size`` bytes."""
    return -(-size // ALIGNMENT) * ALIGNMENT
