"""The cores that another process may use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def pin_threads(process: int, cores: Sequence[int]) -> None:
    """Let all threads of a process run on these cores only; harmless when the process or a thread has ended.

    Linux keeps the cores of every thread apart: those of the process are those of its first thread.
    """
    with suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):
                os.sched_setaffinity(int(thread.name), cores)
