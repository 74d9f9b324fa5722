"""Compiles candidates in warm worker processes."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait

from mlir_sched.compiler.chain import Chain
from mlir_sched.compiler.compile_result import CompileResult, failed
from mlir_sched.compiler.worker_process import JobError, Worker, WorkerLimits, candidate_limits
from mlir_sched.compiler.worker_set import WorkerSet
from mlir_sched.errors import CompilerError, EnvironmentFailureError, Failure, FailureClass, FailureOrigin
from mlir_sched.processes.child import POLL_S, ChildCrashError
from mlir_sched.processes.limits import ChildError, ChildMemoryError, ChildStalledError, ChildTimeoutError
from mlir_sched.processes.shortage import shortage

_MESSAGE_CHARACTERS = 600
_JOB = "mlir_sched.compiler.worker.candidate:compile_candidate"


@dataclass(frozen=True)
class CompileRequest:
    """What a worker compiles.

    Attributes:
        script: The script; None stands for the untuned code.
        constants: The positions of the task's constants (``Task.constants``).
    """

    source: str
    script: str | None
    constants: tuple[int, ...] = ()


class CompilerPool:
    """Warm worker processes that compile candidates with one set of flags; a context manager.

    A candidate that crashes the compiler, hangs or takes too much memory costs its worker, which is replaced.
    """

    def __init__(
        self,
        flags: tuple[str, ...],
        *,
        workers: int | None = None,
        limits: WorkerLimits | None = None,
        chain_length: int = 0,
        shared: WorkerSet | None = None,
    ) -> None:
        """Make a pool without processes; they start when something is to be compiled.

        Args:
            flags: Compiler flags of every candidate, as in ``Task.flags``.
            workers: Most processes, >= 1; by default one per CPU that this process may use.
            chain_length: Dispatches of the chain (``compiler/chain.py``) that programs get; 0 for no chain.
            shared: The processes of several pools, which their owner ends; by default the pool has its own.
        """
        self.chain_length = chain_length
        self.flags = flags
        self._set = WorkerSet(workers) if shared is None else shared
        self._owns_workers = shared is None
        self.workers = self._set.count
        self.limits = limits or candidate_limits(self.workers)
        self._busy: dict[int, Worker] = {}  # by the index of the candidate that it compiles

    def compile(
        self, source: str, scripts: Sequence[str | None], constants: tuple[int, ...] = ()
    ) -> Generator[tuple[int, CompileResult], None, None]:
        """Compile candidates of one task; see :meth:`compile_all`.

        Args:
            source, constants: As in :class:`CompileRequest`.
            scripts: One script per candidate; None stands for the untuned code.
        """
        return self.compile_all([CompileRequest(source, script, constants) for script in scripts])

    def compile_all(self, candidates: Sequence[CompileRequest]) -> Generator[tuple[int, CompileResult], None, None]:
        """Compile candidates and yield (index in ``candidates``, result) as each is done.

        A caller that stops early loses only the candidates that are being compiled.

        Raises:
            UserError: The compiler does not know one of the flags.
            ValueError: The source of a candidate is empty.
            OSError, EnvironmentFailureError: No process can be started, or it takes no job.
        """
        if not all(candidate.source for candidate in candidates):
            raise ValueError("there is no program to compile: the task cannot be tuned")
        waiting = list(range(len(candidates)))[::-1]
        done = 0
        try:
            while done < len(candidates):
                while waiting and (worker := self._set.borrow(self.flags)) is not None:
                    self._busy[waiting[-1]] = worker
                    self._submit(worker, candidates[waiting.pop()])
                for index, result in self._finished():
                    done += 1
                    yield index, result
        finally:
            for worker in self._busy.values():
                self._set.end(worker)
            self._busy = {}

    @contextmanager
    def on_cores(self, cores: Sequence[int]) -> Iterator[None]:
        """Keep the workers on some cores during a block, and let them use all of this process's cores afterwards."""
        self._set.pin(cores)
        try:
            yield
        finally:
            self._set.pin(tuple(os.sched_getaffinity(0)))

    def renew(self) -> None:
        """End the workers that have nothing to do, those of other pools with the same set, too."""
        self._set.renew()

    def close(self) -> None:
        """End the workers, unless other pools share them."""
        if self._owns_workers:
            self._set.close()

    def __enter__(self) -> CompilerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submit(self, worker: Worker, candidate: CompileRequest) -> None:
        chain = Chain(self.chain_length, candidate.constants) if self.chain_length else None
        try:
            worker.submit(_JOB, candidate.source, candidate.script, self.flags, chain)
        except ChildError as lost:
            raise EnvironmentFailureError(f"the compiler process takes no job: {lost}") from None

    def _finished(self) -> list[tuple[int, CompileResult]]:
        """Wait a moment and return the candidates that are done."""
        wait([worker.fileno() for worker in self._busy.values()], POLL_S)
        results = []
        for index, worker in list(self._busy.items()):
            result = self._look_at(worker)
            if result is not None:
                results.append((index, result))
                del self._busy[index]
        return results

    def _look_at(self, worker: Worker) -> CompileResult | None:
        """Return the result of a worker's candidate, and give the worker back or end it; None while it compiles."""
        seconds = worker.seconds()
        try:
            if not worker.is_done(self.limits):
                return None
            result: CompileResult = worker.result(self.limits)
        except ChildStalledError as error:
            failure = failed(FailureClass.COMPILE_TIMEOUT, str(error), seconds, FailureOrigin.ENVIRONMENT)
        except ChildTimeoutError as error:
            failure = failed(FailureClass.COMPILE_TIMEOUT, str(error), seconds)
        except ChildMemoryError as error:
            failure = failed(FailureClass.COMPILE_MEMORY, str(error), seconds)
        except ChildCrashError as error:
            failure = _crashed(str(error), seconds)
        except EnvironmentFailureError as error:
            failure = _crashed(str(error), seconds, FailureOrigin.ENVIRONMENT)
        except CompilerError as error:
            self._set.give_back(worker)
            return failed(FailureClass.COMPILE_ERROR, str(error)[:_MESSAGE_CHARACTERS], seconds)
        except JobError as error:
            self._set.give_back(worker)
            return failed(FailureClass.INTERNAL_ERROR, str(error)[-_MESSAGE_CHARACTERS:], seconds)
        else:
            if worker.memory_bytes() > self.limits.recycle_bytes:
                self._set.end(worker)
            else:
                self._set.give_back(worker)
            return result
        self._set.end(worker)
        return failure


def _crashed(message: str, seconds: float, origin: FailureOrigin = FailureOrigin.CANDIDATE) -> CompileResult:
    """Return the result of a candidate whose worker died; where space is short, LLVM ends a process without a word."""
    if short := shortage():
        message, origin = f"{short}: {message}", FailureOrigin.ENVIRONMENT
    return CompileResult(None, Failure(FailureClass.COMPILE_CRASH, message, origin), "", seconds)
