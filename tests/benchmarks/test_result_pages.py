"""Results are data: files that break the schema are refused, and pages are what the files and the code say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from folders import ROOT

from benchmarks.figures.result_file import ResultFileError, add_table, dump_results, load_results
from benchmarks.figures.result_table import (
    Better,
    Figure,
    Machine,
    MachineResults,
    ResultColumn,
    ResultTable,
    Unit,
)
from benchmarks.figures.tables import cell_text, conclusions
from benchmarks.pages.command import RESULTS, made_pages, results_by_name
from benchmarks.pages.machine_page import machine_page
from benchmarks.pages.makers import excerpt, with_made_parts

FILES = sorted(RESULTS.glob("*.json"))
MACHINE = Machine("a machine", "a processor", ("AVX2",), 2)
TABLE = ResultTable(
    name="speeds",
    question="operators",
    title="Speeds",
    date="2026-11-29",
    command="python -m benchmarks operators",
    versions={"IREE": "3.13.0"},
    threads=1,
    seeds=(0, 1),
    interleaving="In turns",
    spread="95 % interval",
    rows_are="operator",
    columns=(
        ResultColumn("time", Unit.SECONDS),
        ResultColumn("other over ours", Unit.RATIO, Better.ABOVE),
        ResultColumn("how"),
    ),
    rows=(
        ("fast", (Figure(1e-3, 0.9e-3, 1.1e-3), Figure(2.0, 1.8, 2.2, note="TVM"), "script")),
        ("slow", (Figure(2e-3), Figure(0.5, 0.4, 0.6), None)),
        ("even", (Figure(None, 2e-6, 3e-3), Figure(1.1, 0.9, 1.3), "script")),
        ("one day", (None, Figure(1.05, 1.04, 1.06, tie=True), "script")),
    ),
    against=("One seed.",),
)


@pytest.fixture
def data() -> dict[str, Any]:
    """A file's content as JSON, for a test to damage."""
    loaded: dict[str, Any] = json.loads(dump_results(MachineResults(MACHINE, (TABLE,))))
    return loaded


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_results_is_valid_and_written_in_one_way(path: Path) -> None:
    assert dump_results(load_results(path)) == path.read_text()


def test_every_page_is_what_the_data_and_the_code_say() -> None:
    pages = made_pages()
    stale = [str(path.relative_to(ROOT)) for path, text in pages.items() if path.read_text() != text]
    assert stale == [], "run python -m benchmarks pages"
    assert set(RESULTS.glob("*.md")) <= pages.keys()
    assert {path.stem for path in RESULTS.glob("*.md")} == {*results_by_name(), "index"}, "a page without its data"


def test_results_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    add_table(path, MACHINE, TABLE)
    assert load_results(path) == MachineResults(MACHINE, (TABLE,))


def test_a_table_that_is_measured_anew_takes_the_place_of_the_one_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    for table in (TABLE, replace(TABLE, name="other"), replace(TABLE, date="2026-11-30")):
        add_table(path, replace(MACHINE, title=table.date), table)
    found = load_results(path)
    assert [(table.name, table.date) for table in found.tables] == [("speeds", "2026-11-30"), ("other", "2026-11-29")]
    assert found.machine.title == "2026-11-29", "the file's machine stays"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"against": []}, "what speaks against us"),
        ({"rows": []}, "rows and what speaks against us are needed"),
        ({"question": "weather"}, "'weather' is not one of"),
        ({"date": "yesterday"}, "yesterday"),
        ({"rows": [["fast", 1.0]]}, "fast: 1 cells for 3 columns"),
        ({"rows": [["fast", None, None, None]] * 2}, "two rows have one name among fast, fast"),
        ({"rows": [["fast", [1.0, 2.0, 3.0], None, None]]}, "not inside of the spread"),
        ({"rows": [["fast", {"median": 1.0, "low": 0.5}, None, None]]}, "both ends"),
        ({"rows": [["fast", None, None, 3.0]]}, "which has no unit"),
        ({"columns": [{"title": "time", "unit": "minutes"}, {"title": "b"}, {"title": "c"}]}, "minutes"),
        ({"speed": 1}, "speed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_breaks_the_schema_is_refused_by_its_name_and_table(
    data: dict[str, Any], change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    data["tables"][0] |= change
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ResultFileError, match=r"^machine.json, speeds: ") as refused:
        load_results(path)
    assert said in str(refused.value)
    with pytest.raises(ResultFileError):
        add_table(path, MACHINE, TABLE)
    assert json.loads(path.read_text()) == data, "a file that cannot be read is not changed"


def test_two_tables_of_one_name_are_refused(data: dict[str, Any], tmp_path: Path) -> None:
    data["tables"] *= 2
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ResultFileError, match="two tables have one name"):
        load_results(path)


def test_a_page_names_the_rows_that_are_slower_and_those_not_told_apart() -> None:
    mean, sides = conclusions(TABLE)
    assert mean == "Geometric mean of *other over ours*: 1.04, over 4 rows."
    assert sides == "**Slower**: slow. **Faster**: fast. **Not told apart**: even; one day."
    below = replace(TABLE, columns=(TABLE.columns[0], replace(TABLE.columns[1], better=Better.BELOW), TABLE.columns[2]))
    assert "**Slower**: fast. **Faster**: slow." in list(conclusions(below))[1]


def test_a_page_has_the_command_above_the_table_and_what_speaks_against_us_below() -> None:
    page = machine_page("machine", MachineResults(MACHINE, (TABLE,)))
    parts = [TABLE.command, "| fast | 1.00 ms (900 us to 1.10 ms) |", "**Slower**: slow", "- One seed."]
    places = [page.find(part) for part in parts]
    assert -1 not in places, page
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("figure", "unit", "text"),
    [
        (Figure(75e-3, 74.1e-3, 77.7e-3), Unit.SECONDS, "75.0 ms (74.1 to 77.7)"),
        (Figure(523e-6, 990e-6 / 2, 1e-3), Unit.SECONDS, "523 us (495 us to 1.00 ms)"),
        (Figure(None, 3.5, 3.9), Unit.SECONDS, "3.50 to 3.90 s"),
        (Figure(2744), Unit.SECONDS, "2,744 s"),
        (Figure(33.46, tie=True, note="TVM"), Unit.RATIO, "33.5 ~, TVM"),
        (Figure(0.53), Unit.SHARE, "53 %"),
        (Figure(1408), Unit.COUNT, "1,408"),
    ],
)
def test_a_figure_reads_as_in_the_tables(figure: Figure, unit: Unit, text: str) -> None:
    assert cell_text(figure, unit) == text


def test_a_made_part_is_renewed_and_the_text_around_it_stays() -> None:
    text = "before\n<!-- made: twice ab -->\nold\n<!-- end -->\nafter\n"
    made = with_made_parts(text, {"twice": lambda argument: 2 * argument})
    assert made == "before\n<!-- made: twice ab -->\n\nabab\n\n<!-- end -->\nafter\n"
    assert with_made_parts(made, {"twice": lambda argument: 2 * argument}) == made
    with pytest.raises(KeyError):
        with_made_parts(text, {})


def test_parts_of_a_document_are_made_one_by_one() -> None:
    text = "<!-- made: one -->\n<!-- end -->\nbetween\n<!-- made: two b -->\n<!-- end -->\n"
    made = with_made_parts(text, {"one": lambda argument: f"({argument})", "two": lambda argument: f"({argument})"})
    assert [line for line in made.splitlines() if line and "<!--" not in line] == ["()", "between", "(b)"]


def test_an_excerpt_has_the_chosen_rows_and_columns_and_refuses_others() -> None:
    results = {"machine": MachineResults(MACHINE, (TABLE,))}
    shown = excerpt(results, "machine/speeds; rows: slow / fast; columns: how / time")
    assert shown.splitlines()[0] == "| operator | how | time |"
    assert [line.split(" | ")[0] for line in shown.splitlines()[2:]] == ["| slow", "| fast"]
    for argument in ("machine/speeds; rows: none", "machine/none", "none/speeds"):
        with pytest.raises(KeyError):
            excerpt(results, argument)
    with pytest.raises(ValueError, match="none"):
        excerpt(results, "machine/speeds; columns: none")
