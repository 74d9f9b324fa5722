"""Whether a process got the processors that it asked for, as Linux counts it per thread; elsewhere nothing is known.

Source: Linux, ``Documentation/scheduler/sched-stats.rst``: ``schedstat`` of a thread holds the nanoseconds that the
thread ran and those that it waited in a processor's queue. A wait is counted when it ends. That a thread waits at
present follows from proc(5): it is runnable (``stat``), and has not left a processor by itself
(``voluntary_ctxt_switches`` in ``status``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TELLING_S = 0.1
"""Least seconds of waiting that say something: the kernel counts at its ticks, of which one comes in 1 to 10 ms."""


@dataclass(frozen=True)
class ThreadTime:
    """What a thread did so far, in seconds; it slept the rest of the time, or waits at present.

    Attributes:
        ran_s: Seconds on a processor.
        waited_s: Seconds in a processor's queue, in waits that have ended.
        sleeps: How often it left a processor by itself.
        is_runnable: Whether it runs or waits at present.
    """

    ran_s: float
    waited_s: float
    sleeps: int = 0
    is_runnable: bool = False

    @staticmethod
    def of(task: Path) -> ThreadTime:
        """Return what the thread with a folder in ``/proc`` did.

        Raises:
            OSError, ValueError, KeyError: The thread ended, or the kernel does not count.
        """
        ran, waited, _ = map(int, (task / "schedstat").read_text().split())
        state = (task / "stat").read_text().rpartition(")")[2].split()[0]
        counts = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines())
        return ThreadTime(ran / 1e9, waited / 1e9, int(counts["voluntary_ctxt_switches"]), state == "R")

    def since(self, earlier: ThreadTime | None, seconds: float) -> ThreadTime:
        """Return what the thread did in the seconds since an earlier moment; None where it began after that."""
        if earlier is None:
            return self
        ran_s, waited_s = self.ran_s - earlier.ran_s, self.waited_s - earlier.waited_s
        never_slept = self.is_runnable and self.sleeps == earlier.sleeps
        return ThreadTime(ran_s, seconds - ran_s if never_slept else waited_s)


@dataclass(frozen=True)
class ProcessTimes:
    """What the threads of a process did until a moment.

    Attributes:
        at_s: The moment, by ``time.monotonic``.
        threads: Times by thread; empty where the system does not count them, or when the process is gone.
    """

    at_s: float
    threads: Mapping[int, ThreadTime]

    @staticmethod
    def of(process: int) -> ProcessTimes:
        """Return the times of a running process; reading them takes about 0.1 ms per thread."""
        at_s, threads = time.monotonic(), dict[int, ThreadTime]()
        with suppress(OSError):  # the process ended
            for path in Path(f"/proc/{process}/task").iterdir():
                with suppress(OSError, ValueError, KeyError):  # the thread ended, or the kernel does not count
                    threads[int(path.name)] = ThreadTime.of(path)
        return ProcessTimes(at_s, threads)

    def waited_s(self, since: ProcessTimes) -> float:
        """Return the seconds of the time since then for which one thread, the one that did so longest, waited."""
        return max((each.waited_s for each in self._threads_since(since)), default=0.0)

    def is_starved(self, since: ProcessTimes) -> bool:
        """Say whether the process was kept from its work for most of the time since then, by others.

        Then one thread waited in a queue for more than half of the time, and for longer than all threads of the process
        together ran: its own threads cannot have been in its way. What sleeps or is locked waits in no queue.
        """
        ran_s, waited_s = sum(each.ran_s for each in self._threads_since(since)), self.waited_s(since)
        return waited_s > max(ran_s, (self.at_s - since.at_s) / 2, TELLING_S)

    def _threads_since(self, since: ProcessTimes) -> list[ThreadTime]:
        passed_s = self.at_s - since.at_s
        return [now.since(since.threads.get(thread), passed_s) for thread, now in self.threads.items()]
