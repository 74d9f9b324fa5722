"""A child that others keep from the processor is told apart from one that works or sleeps for too long."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import pytest

from mlir_sched.processes import child
from mlir_sched.processes.child import Child
from mlir_sched.processes.limits import ChildLimits, ChildStalledError, ChildTimeoutError
from mlir_sched.processes.starvation import ProcessTimes, ThreadTime

pytestmark = pytest.mark.alone  # fills a core

NEIGHBOURS = 6
"""Processes that share a core with the child: each its own session, which some kernels give equal parts of a core."""
BEGUN_S = 0.5
"""Seconds after which the child works or sleeps, as it is told to."""
LIMITS = ChildLimits(1.5, 1 << 30)
BEFORE = ProcessTimes(0.0, {1: ThreadTime(100.0, 900.0)})


@pytest.fixture
def crowded() -> Iterator[Callable[[int], None]]:
    """Return a function that puts a process on a core that many others fill."""
    core = min(os.sched_getaffinity(0))
    neighbours = list[subprocess.Popen[bytes]]()

    def crowd(process: int) -> None:
        os.sched_setaffinity(process, {core})
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, process, 19)
        for _ in range(NEIGHBOURS):
            neighbours.append(subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True))
            os.sched_setaffinity(neighbours[-1].pid, {core})

    yield crowd
    for neighbour in neighbours:
        neighbour.kill()
        neighbour.wait()


@pytest.mark.parametrize(
    ("text", "error"), [("while True: pass", ChildStalledError), ("import time; time.sleep(60)", ChildTimeoutError)]
)
def test_a_limit_that_passes_in_a_queue_for_a_processor_says_nothing_of_the_child(
    crowded: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, text: str, error: type[Exception]
) -> None:
    monkeypatch.setattr(child, "python_command", lambda *_, **__: [sys.executable, "-c", text])
    process = Child("the test process", "none")
    time.sleep(BEGUN_S)
    crowded(process.pid)
    process.send("begin", LIMITS)
    with pytest.raises(error) as raised:
        process.receive(LIMITS, time.monotonic())
    assert type(raised.value) is error


def test_a_moment_says_nothing() -> None:
    before = ProcessTimes(0.0, {1: ThreadTime(100.0, 900.0, 7)})
    now = ThreadTime(100.0, 900.0, 7, is_runnable=True)
    assert [ProcessTimes(at_s, {1: now}).is_starved(before) for at_s in (0.001, 0.05, 0.5)] == [False, False, True]


@pytest.mark.parametrize(
    ("now", "starved"),
    [
        (ThreadTime(100.1, 900.0, 7, is_runnable=True), True),  # waits since the last look
        (ThreadTime(109.9, 900.0, 7, is_runnable=True), False),  # works since then
        (ThreadTime(100.1, 900.0, 8, is_runnable=True), False),  # slept, for all that is known
        (ThreadTime(100.1, 900.0, 7, is_runnable=False), False),  # sleeps
    ],
)
def test_a_wait_that_has_not_ended_counts_where_the_thread_cannot_have_slept(now: ThreadTime, starved: bool) -> None:
    before = ProcessTimes(0.0, {1: ThreadTime(100.0, 900.0, 7)})
    assert ProcessTimes(10.0, {1: now}).is_starved(before) == starved


@pytest.mark.parametrize(
    ("threads", "starved"),
    [
        ({1: (1.0, 9.0)}, True),
        ({1: (0.0, 1.0), 2: (2.0, 8.0), 3: (2.0, 8.0)}, True),
        ({1: (9.9, 0.1)}, False),  # works
        ({1: (0.001, 0.002)}, False),  # sleeps
        ({1: (5.5, 4.5)}, False),  # works for most of the time
        ({1: (3.3, 6.7), 2: (3.3, 6.7), 3: (3.3, 6.7)}, False),  # its own threads fill the core
        ({}, False),  # the system does not count
    ],
)
def test_starved_is_what_waits_for_most_of_the_time_while_others_have_the_processor(
    threads: Mapping[int, tuple[float, float]], starved: bool
) -> None:
    earlier = BEFORE.threads[1]
    counted = {
        thread: ThreadTime(ran + earlier.ran_s * (thread == 1), waited + earlier.waited_s * (thread == 1))
        for thread, (ran, waited) in threads.items()
    }
    assert ProcessTimes(10.0, counted).is_starved(BEFORE) == starved
