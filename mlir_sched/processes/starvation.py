"""Whether a process got the processors that it asked for, as Linux counts it per thread; elsewhere nothing is known.

Source: Linux, ``Documentation/scheduler/sched-stats.rst``: ``schedstat`` of a thread holds the nanoseconds that the
thread ran and those that it waited in a processor's queue.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ThreadTime:
    """What a thread did so far, in seconds; it slept the rest of the time."""

    ran_s: float
    waited_s: float


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
        """Return the times of a running process; reading them takes about 20 us per thread."""
        at_s, threads = time.monotonic(), dict[int, ThreadTime]()
        with suppress(OSError):  # the process ended
            for path in Path(f"/proc/{process}/task").iterdir():
                with suppress(OSError, ValueError):  # the thread ended, or the kernel does not count
                    ran, waited, _ = map(int, (path / "schedstat").read_text().split())
                    threads[int(path.name)] = ThreadTime(ran / 1e9, waited / 1e9)
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
        return waited_s > max(ran_s, (self.at_s - since.at_s) / 2)

    def _threads_since(self, since: ProcessTimes) -> list[ThreadTime]:
        begun = {thread: since.threads.get(thread, ThreadTime(0.0, 0.0)) for thread in self.threads}
        return [
            ThreadTime(now.ran_s - begun[thread].ran_s, now.waited_s - begun[thread].waited_s)
            for thread, now in self.threads.items()
        ]
