"""Compiler workers that stay for many jobs: starting one takes longer than the compiler takes for a small program."""

from __future__ import annotations

from typing import Any

from mlir_sched.compiler.worker_process import Worker, WorkerLimits


class KeptWorkers:
    """One worker per set of flags, in place of a worker per job."""

    def __init__(self) -> None:
        self._workers: dict[tuple[str, ...], Worker] = {}

    def run(self, flags: tuple[str, ...], job: str, *arguments: Any, limits: WorkerLimits | None = None) -> Any:
        """Run one job and return its result, as ``run_isolated`` does; a worker whose job fails is not kept."""
        worker = self._workers.pop(flags, None) or Worker(flags)
        try:
            worker.submit(job, *arguments)
            result = worker.wait(limits or WorkerLimits())
        except BaseException:
            worker.kill()
            raise
        self._workers[flags] = worker
        return result

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers.values():
            worker.kill()
        self._workers = {}
