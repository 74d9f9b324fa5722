"""The cores on which programs are timed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mlir_sched.runner.cores import choose_cores, other_cores, physical_cores_first


def test_every_physical_core_comes_once_before_any_comes_twice(tmp_path: Path) -> None:
    for core in range(6):
        folder = tmp_path / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        first = core - core % 2
        (folder / "thread_siblings_list").write_text(f"{first}-{first + 1}\n")
    assert physical_cores_first([5, 4, 3, 2, 1, 0], tmp_path) == [5, 3, 1, 4, 2, 0]
    assert physical_cores_first([0, 2, 3, 4], tmp_path) == [0, 2, 4, 3]


def test_cores_whose_hardware_threads_are_not_known_keep_their_order(tmp_path: Path) -> None:
    assert physical_cores_first([3, 1, 2, 0], tmp_path) == [3, 1, 2, 0]


def test_no_core_is_spare_when_all_are_used() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    assert other_cores(allowed) == ()
    assert not set(other_cores(allowed[:1])) & set(allowed[:1])


def test_cores_are_allowed_and_as_many_as_asked() -> None:
    allowed = os.sched_getaffinity(0)
    assert set(choose_cores(len(allowed))) == allowed
    for threads in (0, len(allowed) + 1):
        with pytest.raises(ValueError, match="threads must be"):
            choose_cores(threads)
