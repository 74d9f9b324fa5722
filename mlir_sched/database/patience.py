"""How long a store that another process holds is waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

NOTE_S = 3.0
"""Seconds of waiting after which the user is told; a writer of one transaction is done by then."""


def silent(text: str) -> None:
    """Tell nobody."""
    del text


@dataclass(frozen=True)
class Patience:
    """How long to wait for the lock of another process.

    Attributes:
        seconds: Seconds to wait; Ctrl-C ends the wait.
        note: Is told, once per wait, that the store is waited for.
    """

    seconds: float
    note: Callable[[str], None] = silent


class Waiting:
    """One wait for a lock.

    Args:
        patience: How long to wait.
        name: Name of the store, for the note.
    """

    def __init__(self, patience: Patience, name: str) -> None:
        self._patience, self._name = patience, name
        self._began_s = time.monotonic()
        self._told = False

    def goes_on(self) -> bool:
        """Say whether to try once more."""
        waited_s = time.monotonic() - self._began_s
        if waited_s >= NOTE_S and not self._told:
            self._told = True
            self._patience.note(f"waiting for the record store {self._name}, which another process holds")
        return waited_s < self._patience.seconds
