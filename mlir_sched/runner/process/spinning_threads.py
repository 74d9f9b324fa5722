"""Keeps threads that spin while they wait from taking the cores of those that work.

IREE's task system is waited for by the thread that calls. It spins: on two cores with a worker each, a third of one
core is lost to it. A convolution of 2.08 ms on one thread takes 1.7 to 2.0 ms on two then, and 1.13 without (C2D, IREE
3.13).

IREE waits for a Vulkan device in threads of its own. Mesa's software driver, whose device is the CPU, implements that
wait as a loop: on two cores it doubles or quadruples the time of a kernel, by chance. A thread that wants a core from
its first moment on is such a loop, because one that works first waits for its work; the scheduler is told to run loops
only where a core is idle.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

INTERVAL_S = 0.005
"""How often the threads are looked at."""

YOUNG_S = (0.02, 0.06)
"""Ages between which a thread is judged: before, there is too little to see; after, one that works may look busy too,
and no thread is worth a further look."""

NICENESS = 10
"""Priority of a looping thread: a tenth of the time of a thread that wants the same core."""

BUSY = 0.9
"""Share of its life that a looping thread has run or waited for a core, at least; about 0.3 for one that works."""


def yield_to_workers() -> None:
    """Have the calling thread run only where a core is idle.

    That is for good, and for all threads that it starts from then on: the workers have to be there already. Where the
    system is not Linux or refuses, everything stays as it is.
    """
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def run_without_spinning(command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, demoting its spinning threads, and return its exit code and output.

    Where the system is not Linux or refuses, it runs as it is.
    """
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        threads = Threads(process.pid)
        while True:
            try:
                output, errors = process.communicate(timeout=INTERVAL_S)
            except subprocess.TimeoutExpired:
                threads.demote_spinning()
            else:
                return subprocess.CompletedProcess(command, process.returncode, output, errors)


class Threads:
    """The threads of a process, watched from their first moments on.

    Args:
        process: Its id; its main thread is left alone.
    """

    def __init__(self, process: int) -> None:
        self._folder = Path(f"/proc/{process}/task")
        self._done = {process}
        self._born: dict[int, tuple[float, float]] = {}

    def demote_spinning(self) -> None:
        """Give the young threads that spin a low priority."""
        with suppress(OSError, ValueError, IndexError):  # threads end while they are looked at
            for thread in {int(folder.name) for folder in self._folder.iterdir()} - self._done:
                if self._is_spinning(thread):
                    os.setpriority(os.PRIO_PROCESS, thread, NICENESS)

    def _is_spinning(self, thread: int) -> bool:
        now, wanted_s = time.perf_counter(), self._wanted_s(thread)
        born, had_s = self._born.setdefault(thread, (now, wanted_s))
        age_s = now - born
        spinning = age_s >= YOUNG_S[0] and wanted_s - had_s >= BUSY * age_s
        if spinning or age_s > YOUNG_S[1]:
            self._done.add(thread)
        return spinning

    def _wanted_s(self, thread: int) -> float:
        """Return how long a thread has run or waited for a core."""
        ran_ns, waited_ns, _ = (self._folder / str(thread) / "schedstat").read_text().split()
        return (int(ran_ns) + int(waited_ns)) * 1e-9
