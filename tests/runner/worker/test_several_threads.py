"""Which threads of the runner process have the cores where programs run on several."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mlir_sched.runner.worker.spinning_threads import yield_to_workers
from mlir_sched.runner.worker.wall_clock import workers_delay_ns

pytestmark = pytest.mark.alone

WAITED_NS = 50_000_000
"""How long the worker of a test has to wait for a core."""

SEEN_NS = WAITED_NS // 2
"""How much of that wait a sum over all threads must show: threads that earlier tests left behind take theirs out of the
sum when they end."""


def test_the_calling_thread_alone_yields_to_workers() -> None:
    niceness: dict[str, int] = {}

    def work() -> None:
        yielded.wait()
        niceness["worker"] = own_niceness()

    def call() -> None:
        worker.start()
        yield_to_workers()
        niceness["caller"] = own_niceness()
        yielded.set()
        worker.join()

    yielded, worker, caller = threading.Event(), threading.Thread(target=work), threading.Thread(target=call)
    caller.start()
    caller.join()
    assert niceness == {"worker": own_niceness(), "caller": 19}
    assert own_niceness() < 19


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not tell who waits for a core")
def test_waiting_for_a_core_counts_for_workers_alone() -> None:
    core = min(os.sched_getaffinity(0))
    waited, counted = threading.Event(), threading.Event()
    others_ns, delay_ns = workers_delay_ns() + own_delay_ns(), dict[str, int]()

    def work() -> None:
        os.sched_setaffinity(0, {core})
        while own_delay_ns() < WAITED_NS and time.monotonic() < give_up:
            pass
        delay_ns["worker"], delay_ns["by the worker"] = own_delay_ns(), workers_delay_ns() - others_ns
        waited.set()
        counted.wait()  # a thread that has ended is not counted any more

    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as rival:
        os.sched_setaffinity(rival.pid, {core})
        before, give_up = workers_delay_ns(), time.monotonic() + 60
        worker = threading.Thread(target=work)
        worker.start()
        waited.wait()
        delay_ns["by the caller"] = workers_delay_ns() - before
        counted.set()
        worker.join()
        rival.kill()
    assert delay_ns["worker"] >= WAITED_NS, "two threads on one core, and neither has waited"
    assert delay_ns["by the caller"] >= SEEN_NS > delay_ns["by the worker"]


def own_niceness() -> int:
    """Return the niceness of the calling thread."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def own_delay_ns() -> int:
    """Return how long the calling thread has waited for a core so far."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1])
