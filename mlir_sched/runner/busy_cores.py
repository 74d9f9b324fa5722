"""Work on cores beside a measurement, to see whether it disturbs the measurement.

What look like two cores of a virtual machine may be two hardware threads of one core, and nothing says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

from mlir_sched.runner.calibration_kernel import CalibrationKernel


@contextmanager
def busy(cores: Sequence[int]) -> Iterator[None]:
    """Keep cores busy with the calibration kernel during a block, each by a thread of its own."""
    ended = Event()
    threads = [Thread(target=_occupy, args=(core, ended), daemon=True) for core in cores]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _occupy(core: int, ended: Event) -> None:
    os.sched_setaffinity(0, {core})  # of this thread alone
    kernel = CalibrationKernel()
    while not ended.is_set():
        kernel.run()
