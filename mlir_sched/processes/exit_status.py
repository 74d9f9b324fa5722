"""The message about a process that ended on its own."""

from __future__ import annotations

import signal

STDERR_TAIL_BYTES = 2000
"""How much of what a dead process said goes into the failure's message."""


def describe_exit(name: str, code: int, stderr: bytes) -> str:
    """Return how a process ended and what it said last.

    Args:
        name: What the process is, e.g. ``the runner process``.
        code: Its exit code; negative is the signal that killed it.
        stderr: Its standard error, or the end of it.
    """
    how = f"killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
    said = stderr[-STDERR_TAIL_BYTES:].decode(errors="replace").strip()
    return f"{name} was {how}" + (f"; it said: {said}" if said else "")


def signal_name(number: int) -> str:
    """Return the name of a signal, e.g. ``SIGSEGV``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
