"""Tests of the fast tier start no process, as a pytest plugin: a test that does fails, even where its error is hidden.

The interpreter itself reports every start of a process (PEP 578), whichever library asks for it and in whichever
thread. A hook cannot be taken away again, so one hook serves all tests and is told when to refuse.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

STARTS = frozenset({"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"})
"""Audit events that are raised before a process is started."""


class ProcessStartError(RuntimeError):
    """A test of the fast tier, or a fixture that it is the first to use, wants to start a process."""


class ProcessGuard:
    """Refuses every start of a process while a test is watched."""

    def __init__(self) -> None:
        self._test = ""
        self._refused: list[str] = []
        sys.addaudithook(self._hear)

    @contextmanager
    def watching(self, test: str) -> Iterator[None]:
        """Refuse processes for the time of a test; without a name none is refused."""
        before = self._test, self._refused
        self._test, self._refused = test, []
        try:
            yield
        finally:
            self._test, self._refused = before

    def require_nothing_refused(self) -> None:
        """Raise ``ProcessStartError`` when a process was refused to the watched test."""
        if self._refused:
            raise ProcessStartError(self._refused[0])

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._test and event in STARTS:
            self._refused.append(
                f"{self._test} is in the fast tier and starts a process ({event} {str(arguments)[:200]}): "
                "mark it with pytest.mark.promise, landing or nightly, or give it what needs no process"
            )
            raise ProcessStartError(self._refused[-1])


GUARD = ProcessGuard()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Refuse processes to a test of the fast tier, and to the fixtures that are made for it."""
    with GUARD.watching(item.nodeid if item.get_closest_marker("fast") else ""):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Fail a test whose process was refused, whatever became of the error."""
    result = yield
    GUARD.require_nothing_refused()
    return result
