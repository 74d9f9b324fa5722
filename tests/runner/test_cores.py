"""The cores on which programs are timed."""

from __future__ import annotations

from pathlib import Path

from mlir_sched.runner.cores import physical_cores_first


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
