"""The worker processes of a run: one budget for all sets of compiler flags."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mlir_sched.compiler.worker_process import Worker


class WorkerSet:
    """Workers that pools borrow, at most ``count`` at a time; a context manager.

    A worker is bound to its flags. One that waits for jobs under other flags ends where its place is needed: the one
    that was used least recently.

    Args:
        count: Most processes, >= 1; by default one per CPU that this process may use.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count if count is not None else len(os.sched_getaffinity(0))
        if self.count < 1:
            raise ValueError(f"a pool needs at least 1 worker, got {self.count}")
        self._idle: list[Worker] = []  # the one that was used least recently first
        self._lent: list[Worker] = []

    def borrow(self, flags: tuple[str, ...]) -> Worker | None:
        """Return a worker for some flags, a new one where none waits; None while all of the set's workers are lent.

        Raises:
            OSError: No process can be started.
        """
        for dead in [worker for worker in self._idle if not worker.is_alive()]:
            self._idle.remove(dead)
            dead.kill()
        worker = next((worker for worker in reversed(self._idle) if worker.flags == flags), None)
        if worker is not None:
            self._idle.remove(worker)
        elif len(self._lent) == self.count:
            return None
        else:
            if len(self._lent) + len(self._idle) == self.count:
                self._idle.pop(0).kill()
            worker = Worker(flags)
        self._lent.append(worker)
        return worker

    def give_back(self, worker: Worker) -> None:
        """Take back a worker that has nothing to do."""
        self._lent.remove(worker)
        self._idle.append(worker)

    def end(self, worker: Worker) -> None:
        """End a worker that was lent."""
        self._lent.remove(worker)
        worker.kill()

    def pin(self, cores: Sequence[int]) -> None:
        """Keep all workers on some cores."""
        for worker in (*self._idle, *self._lent):
            _pin_threads(worker.pid, cores)

    def renew(self) -> None:
        """End the workers that have nothing to do, so that what follows has new ones."""
        for worker in self._idle:
            worker.kill()
        self._idle = []

    def close(self) -> None:
        """End all workers."""
        for worker in (*self._idle, *self._lent):
            worker.kill()
        self._idle, self._lent = [], []

    def __enter__(self) -> WorkerSet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _pin_threads(process: int, cores: Sequence[int]) -> None:
    """Let all threads of a process run on these cores only; harmless when the process or a thread has ended.

    Linux keeps the cores of every thread apart: those of the process are those of its first thread.
    """
    with suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):
                os.sched_setaffinity(int(thread.name), cores)
