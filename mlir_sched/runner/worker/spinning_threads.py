"""Keeps threads that spin while they wait from taking cores away from threads that work.

The thread that calls a program on IREE's task system spins while it waits for the workers: on two cores with a worker
each, it takes a third of one core (IREE 3.13).

IREE waits for a Vulkan device in threads of its own. Mesa's software driver, whose device is the CPU, implements this
wait as a loop: on two cores it doubles or quadruples the time of a kernel, by chance. A thread that wants a core from
its first moment on is taken for such a loop, because a working thread starts by waiting for its work; looping threads
get a low priority.
"""

import math
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mlir_sched.processes.executable import Ended, run_program
from mlir_sched.processes.limits import ChildLimits
from mlir_sched.processes.memory import child_memory_bytes

INTERVAL_S = 0.005
"""Seconds between two looks at the threads."""

YOUNG_S = (0.02, 0.06)
"""Ages in seconds between which a thread is judged. Before, too little is known of it; after, a working thread may look
busy, too, so threads are not looked at any more."""

LOWEST = 19
"""The greatest niceness."""

NICENESS = 10
"""Niceness of a looping thread: it gets a tenth of the time of a normal thread that wants the same core."""

BUSY = 0.9
"""Least share of its life that a looping thread has run or waited for a core; a working thread has about 0.3."""


def yield_to_workers() -> None:
    """Give the calling thread the lowest priority: a hundredth of a core that a worker wants, too.

    Under ``SCHED_IDLE``, the policy for idle cores, calls take many times as long beside a busy process per core.

    The change is permanent for a thread without privileges, and threads that the calling thread starts later inherit
    it: start the workers first. Where the system is not Linux, nothing changes.
    """
    if sys.platform == "linux":  # elsewhere niceness belongs to the whole process
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST)


def run_without_spinning(command: Sequence[str]) -> Ended:
    """Run a program to its end, demoting its spinning threads, and return how it ended.

    It may take any time: the runner's process, which waits for it, has a deadline. Where the system refuses, no thread
    is demoted.

    Raises:
        ChildMemoryError: The program took more memory than a child may.
    """
    limits = ChildLimits(math.inf, child_memory_bytes())
    return run_program(
        command, limits, watch=lambda process: WatchedThreads(process).demote_spinning, poll_s=INTERVAL_S
    )


class WatchedThreads:
    """The threads of a process, watched from their first moments on.

    Args:
        process: Id of the process; its main thread is never demoted.
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
