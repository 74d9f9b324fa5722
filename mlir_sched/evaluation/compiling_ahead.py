"""Work on the next round beside the current one, on cores that no measured program runs on, if there are any."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cached_property
from threading import Event

from mlir_sched.compiler import CompilerPool

SWITCH_S = 1e-4
"""Seconds after which a thread of this process lets another one run. The thread that measures asks for little, and
should not wait for the thread that chooses candidates as long as Python's default makes it, 5 ms per question."""


class CompilingAhead:
    """A thread that has a pool compile while programs are measured, or only decides while the pool compiles.

    What runs beside a measurement disturbs it by the memory that both use, and by less than sessions differ anyhow.

    Args:
        pool: Compiles; nothing else uses it meanwhile.
        find_cores: Returns the cores that measured programs leave free, asked once, before the first measurement; where
            there are none, nothing is done beside measurements.
    """

    def __init__(self, pool: CompilerPool, find_cores: Callable[[], Sequence[int]]) -> None:
        self._pool = pool
        self._find_cores = find_cores
        self._thread = ThreadPoolExecutor(1, initializer=self._move)

    @cached_property
    def _cores(self) -> Sequence[int]:
        return self._find_cores()

    def _move(self) -> None:
        if self._cores:
            os.sched_setaffinity(0, self._cores)

    @property
    def workers(self) -> int:
        """How many of the pool's workers have a core of their own meanwhile."""
        return min(len(self._cores), self._pool.workers)

    @contextmanager
    def beside(self, job: Callable[[Callable[[], bool]], None]) -> Iterator[None]:
        """Run a job beside the block, and wait for its end; all cores are the pool's once the block has ended.

        Args:
            job: What to do; its argument says whether the block was left by an exception, so that the job should end.

        Raises:
            Exception: What the job raised, unless the block raised something itself.
        """
        if not self._cores:
            yield
            return
        stopped, interval_s = Event(), sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        running = self._thread.submit(job, stopped.is_set)
        try:
            with self._pool.on_cores(self._cores):
                yield
        except BaseException:
            stopped.set()
            wait([running])
            raise
        finally:
            sys.setswitchinterval(interval_s)
        running.result()

    @contextmanager
    def beside_compiling(self, job: Callable[[], object]) -> Iterator[None]:
        """Run a job beside the block, in which the pool compiles, where no core is free beside measurements.

        Args:
            job: What to do otherwise while programs are measured, except for compiling. It raises nothing.
        """
        running = [] if self._cores else [self._thread.submit(job)]
        try:
            yield
        finally:
            wait(running)

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()
