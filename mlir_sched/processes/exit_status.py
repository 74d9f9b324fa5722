"""The message about a process that ended on its own."""

from __future__ import annotations

import signal

SAID_BYTES = 600
"""Bytes of a dead process's last output that the message about its end keeps."""


def describe_exit(name: str, code: int, said: str) -> str:
    """Return how a process ended and what it said last.

    Args:
        name: What the process is, e.g. ``the runner process``.
        code: Its exit code; negative is the signal that killed it.
        said: The end of its output.
    """
    how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
    return f"{name} {how}" + (f"; it said: {said}" if said else "")


def last_words(written: bytes) -> str:
    """Return the end of what a process wrote, as text."""
    return written[-SAID_BYTES:].decode(errors="replace").strip()


def signal_name(number: int) -> str:
    """Return the name of a signal, e.g. ``SIGSEGV``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
