"""What a process takes of the memory, and took at most; pages of files that it gives back."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np

from mlir_sched.processes.memory import begin_peak, own_bytes, peak_bytes
from mlir_sched.runner.worker.loading import release_pages

LARGE, NOISE = 2**26, 2**23
"""Bytes that are allocated, more than the C library ever keeps; and what else the process may take or give back."""


def resident() -> int:
    return own_bytes(os.getpid())


def allocate_and_free() -> None:
    np.ones(LARGE, np.uint8)


def test_the_peak_is_that_since_it_began() -> None:
    allocate_and_free()
    begin_peak()
    before = resident()
    assert abs(peak_bytes() - before) < NOISE
    allocate_and_free()
    assert resident() - before < NOISE
    assert abs(peak_bytes() - before - LARGE) < NOISE


def test_pages_of_a_mapped_file_are_given_back_and_can_be_read_again(tmp_path: Path) -> None:
    path = (tmp_path / "a name with spaces").resolve()
    path.write_bytes(bytes([1]) * LARGE)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        before = resident()
        assert np.frombuffer(mapped, np.uint8).sum() == LARGE
        assert abs(resident() - before - LARGE) < NOISE
        release_pages([str(tmp_path / "other"), str(path)])
        assert resident() - before < NOISE
        assert np.frombuffer(mapped, np.uint8).sum() == LARGE


def test_what_was_written_over_a_mapped_file_stays(tmp_path: Path) -> None:
    path = (tmp_path / "file").resolve()
    path.write_bytes(bytes(mmap.PAGESIZE))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        mapped[0] = 7
        release_pages([str(path)])
        assert mapped[0] == 7
