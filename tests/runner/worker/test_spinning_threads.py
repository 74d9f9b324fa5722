"""Threads of IREE's programs that spin are demoted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from mlir_sched.runner.worker.spinning_threads import NICENESS, WatchedThreads, run_without_spinning

pytestmark = pytest.mark.alone

LOOP = "import threading, time; threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start(); time.sleep(60)"
WORK = """
import threading, time
def work():
    while True:
        time.sleep(0.01)
        sum(range(50000))
threading.Thread(target=work).start()
time.sleep(60)
"""


@pytest.mark.landing
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not tell who waits for a core")
@pytest.mark.parametrize(("program", "expected"), [(LOOP, True), (WORK, False)])
def test_thread_that_spins_from_the_start_is_demoted(program: str, expected: bool) -> None:
    """On a busy virtual machine a spinning thread may lose a tenth of its first 60 ms to other machines."""
    assert any(is_demoted(program) for _ in range(5)) == expected


def is_demoted(program: str) -> bool:
    """Run a program whose main thread starts one other, and say whether this one is demoted."""
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        threads = WatchedThreads(process.pid)
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            threads.demote_spinning()
            time.sleep(0.005)
        (other,) = (t.id for t in psutil.Process(process.pid).threads() if t.id != process.pid)
        demoted = os.getpriority(os.PRIO_PROCESS, other) == NICENESS
        process.kill()
    return demoted


def test_output_and_exit_code_of_a_program_are_kept() -> None:
    ended = run_without_spinning(["/bin/sh", "-c", "sleep 0.02; echo said; echo wrong >&2; exit 3"])
    assert (ended.code, ended.output, ended.errors) == (3, b"said\n", b"wrong\n")
