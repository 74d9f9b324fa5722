"""Work on cores beside a measurement, to see whether it disturbs the measurement.

What look like two cores of a virtual machine may be two hardware threads of one core, and nothing says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

import numpy as np

SIZE = 64
"""Rows and columns of the f32 matrices that are multiplied: they fit into the first-level cache."""


@contextmanager
def busy(cores: Sequence[int]) -> Iterator[None]:
    """Keep cores busy with multiply-adds during a block, each by a thread of its own."""
    ended = Event()
    threads = [Thread(target=_multiply, args=(core, ended), daemon=True) for core in cores]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _multiply(core: int, ended: Event) -> None:
    os.sched_setaffinity(0, {core})  # of this thread alone
    left = np.full((SIZE, SIZE), 0.5, dtype=np.float32)
    product = np.empty_like(left)
    while not ended.is_set():
        for _ in range(64):
            np.matmul(left, left, out=product)
