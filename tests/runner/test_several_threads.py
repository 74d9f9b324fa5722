"""Which threads of the runner process have the cores where programs run on several."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from mlir_sched.runner.process.spinning_threads import yield_to_workers
from mlir_sched.runner.process.wall_clock import workers_delay_ns


def test_the_calling_thread_alone_yields_to_workers() -> None:
    policies: dict[str, int] = {}

    def work() -> None:
        yielded.wait()
        policies["worker"] = os.sched_getscheduler(0)

    def call() -> None:
        worker.start()
        yield_to_workers()
        policies["caller"] = os.sched_getscheduler(0)
        yielded.set()
        worker.join()

    yielded, worker, caller = threading.Event(), threading.Thread(target=work), threading.Thread(target=call)
    caller.start()
    caller.join()
    assert policies == {"worker": os.SCHED_OTHER, "caller": os.SCHED_IDLE}


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not tell who waits for a core")
def test_waiting_for_a_core_counts_for_workers_alone() -> None:
    core = min(os.sched_getaffinity(0))
    seen = {"caller": 0}

    def work() -> None:
        os.sched_setaffinity(0, {core})
        before, end = workers_delay_ns(), time.monotonic() + 0.3
        while time.monotonic() < end:
            pass
        seen["worker itself"] = workers_delay_ns() - before

    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as rival:
        os.sched_setaffinity(rival.pid, {core})
        worker = threading.Thread(target=work)
        worker.start()
        before = workers_delay_ns()
        while worker.is_alive():  # a thread that has ended is not counted any more
            seen["caller"] = max(seen["caller"], workers_delay_ns() - before)
            time.sleep(0.01)
        worker.join()
        rival.kill()
    assert seen["caller"] > 5 * seen["worker itself"]
