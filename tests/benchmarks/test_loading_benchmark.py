"""The figures of loading as a table of results."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Figure
from benchmarks.tool.loading import MIB, Loaded, results_table
from mlir_sched.outcome import LoadCost

PLAIN = LoadCost(0.5, 100 * MIB, 80 * MIB)


def test_memory_is_relative_to_that_of_the_plain_program() -> None:
    row = Loaded("network, folded", LoadCost(0.1234, 190 * MIB, 84 * MIB), PLAIN, 91 * MIB)
    table = results_table([row], Publishing(Path("machine.json"), ("One machine.",), "command"), threads=1)
    assert table.rows == (("network, folded", tuple(map(Figure, (1.9, 1.05, 190.0, 91.0, 0.12)))),)
    assert [column.title for column in table.columns][:2] == ["most memory over plain", "memory then over plain"]
