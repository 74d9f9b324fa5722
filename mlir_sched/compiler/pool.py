"""Compiles candidates in warm worker processes."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from types import TracebackType

from mlir_sched.compiler.chain import Chain
from mlir_sched.compiler.result import CompileResult, failed
from mlir_sched.compiler.worker_process import JobError, Worker, WorkerLimits, candidate_limits
from mlir_sched.errors import EnvironmentFailureError, Failure, FailureClass, FailureOrigin
from mlir_sched.processes.affinity import pin_threads
from mlir_sched.processes.child import POLL_S, ChildCrashError
from mlir_sched.processes.limits import ChildError, ChildMemoryError, ChildTimeoutError
from mlir_sched.processes.shortage import shortage

_MESSAGE_CHARACTERS = 600
_JOB = "mlir_sched.compiler.worker.candidate:compile_candidate"


@dataclass(frozen=True)
class Candidate:
    """What a worker compiles.

    Attributes:
        source: The task's program (``Task.source``).
        script: The script; None stands for the untuned code.
        constants: The positions of the task's constants (``Task.constants``).
    """

    source: str
    script: str | None
    constants: tuple[int, ...] = ()


@dataclass
class _Slot:
    """A slot for one worker; ``index`` is that of the candidate that the worker compiles, None while it is idle."""

    worker: Worker
    index: int | None = field(default=None)


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
    ) -> None:
        """Make a pool without processes; they start when something is to be compiled.

        Args:
            flags: Compiler flags of every candidate, as in ``Task.flags``.
            workers: Number of processes, >= 1; by default one per CPU that this process may use.
            limits: Time and memory that one candidate may take.
            chain_length: Dispatches of the chain (``compiler/chain.py``) that programs get; 0 for no chain.
        """
        self.chain_length = chain_length
        self.flags = flags
        count = workers if workers is not None else len(os.sched_getaffinity(0))
        if count < 1:
            raise ValueError(f"a pool needs at least 1 worker, got {count}")
        self.limits = limits or candidate_limits(count)
        self.workers = count
        self._slots: list[_Slot] = []

    def compile(
        self, source: str, scripts: Sequence[str | None], constants: tuple[int, ...] = ()
    ) -> Generator[tuple[int, CompileResult], None, None]:
        """Compile candidates of one task; see :meth:`compile_all`.

        Args:
            source, constants: As in :class:`Candidate`.
            scripts: One script per candidate; None stands for the untuned code.
        """
        return self.compile_all([Candidate(source, script, constants) for script in scripts])

    def compile_all(self, candidates: Sequence[Candidate]) -> Generator[tuple[int, CompileResult], None, None]:
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
            while candidates and len(self._slots) < self.workers:
                self._slots.append(_Slot(Worker(self.flags)))
            while done < len(candidates):
                for slot in self._slots:
                    if slot.index is None and waiting:
                        slot.index = waiting.pop()
                        self._submit(slot.worker, candidates[slot.index])
                for index, result in self._finished():
                    done += 1
                    yield index, result
        except OSError:
            self.close()
            raise
        finally:
            self._stop_jobs()

    @contextmanager
    def on_cores(self, cores: Sequence[int]) -> Iterator[None]:
        """Keep the workers on some cores during a block, and let them use all of this process's cores afterwards."""
        self._restrict(cores)
        try:
            yield
        finally:
            self._restrict(tuple(os.sched_getaffinity(0)))

    def close(self) -> None:
        """End the workers."""
        for slot in self._slots:
            slot.worker.kill()
        self._slots = []

    def __enter__(self) -> CompilerPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stop_jobs(self) -> None:
        """Replace the workers that compile something; where no process can be started, the next call starts all."""
        try:
            for slot in self._slots:
                if slot.index is not None:
                    slot.index = None
                    self._replace(slot)
        except OSError:
            self.close()

    def _restrict(self, cores: Sequence[int]) -> None:
        for slot in self._slots:
            pin_threads(slot.worker.pid, cores)

    def _submit(self, worker: Worker, candidate: Candidate) -> None:
        chain = Chain(self.chain_length, candidate.constants) if self.chain_length else None
        try:
            worker.submit(_JOB, candidate.source, candidate.script, self.flags, chain)
        except ChildError as lost:
            raise EnvironmentFailureError(f"the compiler process takes no job: {lost}") from None

    def _finished(self) -> list[tuple[int, CompileResult]]:
        """Wait a moment and return the candidates that are done."""
        busy = [slot for slot in self._slots if slot.index is not None]
        wait([slot.worker.fileno() for slot in busy], POLL_S)
        results = []
        for slot in busy:
            result = self._look_at(slot)
            if result is not None and slot.index is not None:
                results.append((slot.index, result))
                slot.index = None
        return results

    def _look_at(self, slot: _Slot) -> CompileResult | None:
        seconds = slot.worker.seconds()
        try:
            if not slot.worker.is_done(self.limits):
                return None
            result: CompileResult = slot.worker.receive(self.limits)
        except ChildTimeoutError as error:
            self._replace(slot)
            return failed(FailureClass.COMPILE_TIMEOUT, str(error), seconds)
        except ChildMemoryError as error:
            self._replace(slot)
            return failed(FailureClass.COMPILE_MEMORY, str(error), seconds)
        except ChildCrashError as error:
            self._replace(slot)
            return _crashed(str(error), seconds)
        except EnvironmentFailureError as error:
            self._replace(slot)
            return _crashed(str(error), seconds, FailureOrigin.ENVIRONMENT)
        except JobError as error:
            return failed(FailureClass.INTERNAL_ERROR, str(error)[-_MESSAGE_CHARACTERS:], seconds)
        if slot.worker.memory_bytes() > self.limits.recycle_bytes:
            self._replace(slot)
        return result

    def _replace(self, slot: _Slot) -> None:
        slot.worker.kill()
        slot.worker = Worker(self.flags)


def _crashed(message: str, seconds: float, origin: FailureOrigin = FailureOrigin.CANDIDATE) -> CompileResult:
    """Return the result of a candidate whose worker died; where space is short, LLVM ends a process without a word."""
    if short := shortage():
        message, origin = f"{short}: {message}", FailureOrigin.ENVIRONMENT
    return CompileResult(None, Failure(FailureClass.COMPILE_CRASH, message, origin), "", seconds)
