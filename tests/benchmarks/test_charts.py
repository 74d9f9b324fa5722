"""Pictures of tables: how long the bars are, what is drawn, and that the pictures of the docs show today's data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.figures.charts import digest_in, drawing_of, png_of, relative_speeds
from benchmarks.figures.result_file import add_table, load_results
from benchmarks.figures.result_table import (
    Chart,
    Figure,
    Machine,
    MachineResults,
    Picture,
    ResultColumn,
    ResultTable,
    Unit,
)
from benchmarks.pages.command import PICTURES, drawings, results_by_name

TABLE = ResultTable(
    name="speeds",
    question="operators",
    title="Speeds",
    date="2026-11-29",
    command="python -m benchmarks operators",
    versions={"IREE": "3.13.0"},
    threads=1,
    seeds=(0,),
    interleaving="In turns",
    spread="95 % interval",
    rows_are="operator",
    columns=(ResultColumn("`eager`", Unit.SECONDS), ResultColumn("ours", Unit.SECONDS), ResultColumn("how")),
    rows=(("A", (Figure(3e-4, 2e-4, 4e-4), Figure(2e-4), "script")), ("B", (None, Figure(5e-6), None))),
    against=("One seed.",),
    picture=Picture("speeds.png", Chart.BARS, "speed", ("ours", "`eager`")),
)


def test_every_picture_of_the_docs_shows_the_data_that_there_is() -> None:
    wanted = drawings(results_by_name())
    stale = [path.name for path, drawing in wanted.items() if digest_in(path) != drawing.digest]
    assert stale == [], "run python -m benchmarks pages"
    assert set(PICTURES.rglob("*.png")) == set(wanted), "a picture without its data"


def test_speeds_are_relative_to_the_fastest_of_the_row() -> None:
    assert relative_speeds([(3e-4,) * 3, (2e-4,) * 3, None]) == [pytest.approx(2 / 3), 1.0, 0.0]


def test_a_drawing_has_the_columns_of_the_picture_with_their_spreads() -> None:
    drawing = drawing_of(TABLE)
    assert drawing.columns == ("ours", "eager")
    assert drawing.rows == {"A": ((2e-4, 2e-4, 2e-4), (3e-4, 2e-4, 4e-4)), "B": ((5e-6, 5e-6, 5e-6), None)}


@pytest.mark.parametrize("chart", Chart)
def test_the_same_data_give_the_same_picture_which_names_them(chart: Chart, tmp_path: Path) -> None:
    drawing = replace(drawing_of(TABLE), chart=chart)
    assert png_of(drawing) == png_of(drawing)
    (tmp_path / "chart.png").write_bytes(png_of(drawing))
    assert digest_in(tmp_path / "chart.png") == drawing.digest
    assert digest_in(tmp_path / "none.png") is None


def test_another_figure_gives_another_digest_and_another_note_does_not() -> None:
    slower = replace(TABLE, rows=(("A", (Figure(4e-4), Figure(2e-4), "script")), TABLE.rows[1]))
    assert drawing_of(slower).digest != drawing_of(TABLE).digest
    assert drawing_of(replace(TABLE, against=("Two.",), date="2026-11-30")).digest == drawing_of(TABLE).digest


def test_a_picture_stays_with_its_table_when_the_table_is_measured_anew(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    for table in (TABLE, replace(TABLE, date="2026-11-30", picture=None)):
        add_table(path, Machine("a machine", "a processor", (), 2), table)
    assert load_results(path).table("speeds") == replace(TABLE, date="2026-11-30")


def test_a_picture_of_a_column_that_there_is_not_and_two_pictures_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="the picture has columns that the table does not have: theirs"):
        replace(TABLE, picture=Picture("speeds.png", Chart.BARS, "speed", ("theirs",)))
    twice = MachineResults(Machine("a machine", "a processor", (), 2), (TABLE, replace(TABLE, name="again")))
    with pytest.raises(ValueError, match=r"two tables have one picture among speeds\.png"):
        drawings({"machine": twice})
