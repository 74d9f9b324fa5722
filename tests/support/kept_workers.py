"""Compiler workers that stay for many jobs: starting one takes longer than the compiler takes for a small program."""

from __future__ import annotations

from threading import Lock
from typing import Any

from mlir_sched.compiler.worker_process import Worker, WorkerLimits


class KeptWorkers:
    """Workers per set of flags, as many as jobs ran at once, in place of a worker per job."""

    def __init__(self) -> None:
        self._idle: list[Worker] = []
        self._lock = Lock()  # programs are extracted in several threads

    def run(self, flags: tuple[str, ...], job: str, *arguments: Any, limits: WorkerLimits | None = None) -> Any:
        """Run one job and return its result, as ``run_isolated`` does; a worker whose job fails is not kept."""
        worker = self._taken(flags) or Worker(flags)
        try:
            worker.submit(job, *arguments)
            result = worker.wait(limits or WorkerLimits())
        except BaseException:
            worker.kill()
            raise
        self._idle.append(worker)
        return result

    def close(self) -> None:
        """End the workers."""
        for worker in self._idle:
            worker.kill()
        self._idle = []

    def _taken(self, flags: tuple[str, ...]) -> Worker | None:
        """Return an idle worker with these flags, which is not idle any more; None where there is none."""
        with self._lock:
            found = next((worker for worker in self._idle if worker.flags == flags), None)
            if found is not None:
                self._idle.remove(found)
            return found
