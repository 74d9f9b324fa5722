"""Charts of benchmarks: how long the bars are, and that a picture is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.figures.charts import relative_speed, write_relative_speeds

SECONDS = {"A": {"torch eager": 3e-4, "mlir-sched": 2e-4}, "B": {"mlir-sched": 5e-6}}


@pytest.mark.parametrize(
    ("program", "label", "expected"), [("A", "torch eager", 2 / 3), ("A", "mlir-sched", 1.0), ("B", "torch eager", 0.0)]
)
def test_speed_is_relative_to_the_fastest(program: str, label: str, expected: float) -> None:
    assert relative_speed(SECONDS[program], label) == pytest.approx(expected)


def test_a_picture_is_written_where_a_time_is_missing(tmp_path: Path) -> None:
    write_relative_speeds(tmp_path / "chart.png", SECONDS, ("mlir-sched", "torch eager"))
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
