"""The cores on which programs are timed, and work on cores beside them, to see whether it disturbs the times.

What look like two cores of a virtual machine may be two hardware threads of one core, and nothing says so.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import numpy as np
import psutil

_CPU_SYSFS = Path("/sys/devices/system/cpu")
SIZE = 64
REPEATS = 8
"""The kernel multiplies two 64x64 f32 matrices 8 times: 48 KB and 4 MFLOP, some 50 us on one AVX-512 core."""


def choose_cores(threads: int) -> tuple[int, ...]:
    """Return ``threads`` of the cores this process may use: the least busy during 0.1 s, of equal cores the last.

    Where cores are hardware threads, no two of one physical core are taken before every physical core has one.

    Raises:
        ValueError: There are fewer cores.
    """
    allowed = sorted(os.sched_getaffinity(0))
    if not 1 <= threads <= len(allowed):
        raise ValueError(f"threads must be 1 to {len(allowed)}, the cores this process may use; got {threads}")
    busy = psutil.cpu_percent(interval=0.1, percpu=True)
    order = sorted(allowed, key=lambda core: (round(busy[core], -1) if core < len(busy) else 0.0, -core))
    return tuple(sorted(physical_cores_first(order)[:threads]))


def other_cores(used: Sequence[int]) -> tuple[int, ...]:
    """Return the cores this process may use that share no physical core with those that are used."""
    taken = {_siblings(core) for core in used}
    return tuple(core for core in sorted(os.sched_getaffinity(0)) if _siblings(core) not in taken)


def physical_cores_first(order: Sequence[int], sysfs: Path = _CPU_SYSFS) -> list[int]:
    """Return logical cores so that one of every physical core comes before the second of any, else in their order."""
    seen: Counter[str] = Counter()
    ranks = {}
    for core in order:
        siblings = _siblings(core, sysfs)
        ranks[core] = seen[siblings]
        seen[siblings] += 1
    return sorted(order, key=ranks.__getitem__)


def _siblings(core: int, sysfs: Path = _CPU_SYSFS) -> str:
    """Return the logical cores of a core's physical core as Linux lists them; the core itself where that is unknown."""
    try:
        return (sysfs / f"cpu{core}" / "topology" / "thread_siblings_list").read_text().strip()
    except OSError:
        return str(core)


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


class CalibrationKernel:
    """A fixed computation that is bound by the multiply-add units, which hardware threads share.

    Its matrices live in the first-level cache.
    """

    def __init__(self) -> None:
        self._left = np.full((SIZE, SIZE), 0.5, dtype=np.float32)
        self._right = np.full((SIZE, SIZE), 0.25, dtype=np.float32)
        self._product = np.empty((SIZE, SIZE), dtype=np.float32)

    def run(self) -> None:
        """Run the kernel once, on the current core."""
        for _ in range(REPEATS):
            np.matmul(self._left, self._right, out=self._product)
