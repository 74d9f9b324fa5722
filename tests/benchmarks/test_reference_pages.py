"""Tables of reference have everything that the code has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import pytest
from folders import ROOT
from made_result import WHOLE
from test_layers import LAYERS

from benchmarks.pages import reference
from benchmarks.pages.docstrings import attributes_of
from benchmarks.pages.summary_fields import json_type, summary
from mlir_sched.database.schema import METADATA
from mlir_sched.errors import FailureClass
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.program.rewrites.layout.rules import RULES
from mlir_sched.sampling import Distribution, PerfectTile, Value
from mlir_sched.transform_scripts.schedule import Schedule


def names_in(table: str) -> list[str]:
    """Return the first cells of a Markdown table, without what follows a name."""
    return re.findall(r"^\| `(\w+)", table, re.MULTILINE)


def test_every_class_of_failures_has_a_meaning() -> None:
    rows = reference.failures().splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == [f"| `{one}`" for one in FailureClass]
    assert all(len(row.split(" | ")[1].split()) > 3 for row in rows)
    assert [row.endswith("| yes |") for row in rows] == [one.is_lasting for one in FailureClass]


def test_every_op_with_a_rule_is_in_the_table_of_layouts() -> None:
    table = reference.layouts()
    assert set(re.findall(r"`((?:linalg|tensor)\.\w+)`", table)) == RULES.keys()
    assert "<!-- made: layouts -->" in (ROOT / "docs" / "rewrites.md").read_text()


def test_every_draw_of_a_schedule_is_there_with_its_parameters() -> None:
    table = reference.sampling()
    assert sorted(names_in(table)) == sorted(name for name in dir(Schedule) if name.startswith("sample_"))
    assert "`sample_int(name, low, high, *, step=1, static=False)` | Draw an integer of `low..high`." in table


def test_every_other_method_of_a_schedule_is_on_the_page_of_verbs() -> None:
    page = (ROOT / "docs" / "reference" / "verbs.md").read_text()
    methods = [name for name in dir(Schedule) if callable(getattr(Schedule, name)) and not name.startswith("_")]
    shown = re.findall(r"^\| `(\w+)\(", page, re.MULTILINE)
    assert sorted(shown) == sorted(name for name in methods if not name.startswith("sample_"))


def parts_of(page: str) -> dict[str, str]:
    """Return the text below each heading of a part, by the heading."""
    return dict(re.findall(r"^### (\w+)\n\n((?:.|\n)*?)(?=\n### |\Z)", page, re.MULTILINE))


@pytest.mark.parametrize("target", ["llvm-cpu", "vulkan", "cuda"])
def test_every_module_of_a_default_space_is_there_with_its_stage(target: str) -> None:
    found = import_module(f"mlir_sched.transform_scripts.{target.replace('-', '_')}").default_modules()
    assert names_in(reference.modules(target)) == [module.name for module in found]
    assert f"| `{found[-1].name}` | LOWER | " in reference.modules(target)
    assert f"<!-- made: modules {target} -->" in (ROOT / "docs" / "modules.md").read_text()


def test_every_distribution_is_there_with_what_its_values_are() -> None:
    table = reference.distributions()
    assert set(names_in(table)) == {one.kind for one in Distribution.__subclasses__()}
    assert f"| `{PerfectTile.kind}` | `PerfectTile` | Nested tile sizes of one loop" in table


def test_every_column_of_the_store_is_there() -> None:
    parts = parts_of(reference.store_tables())
    assert parts.keys() == METADATA.tables.keys()
    for name, table in METADATA.tables.items():
        assert names_in(parts[name]) == [column.name for column in table.columns]


def written(made: Any, data: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield the class of every part of a result, with the names of what its JSON data has."""
    if is_dataclass(made):
        yield type(made).__name__, [*data]
        for field in fields(made):
            yield from written(getattr(made, field.name), data[field.name])
    if isinstance(made, tuple):
        for one, of_one in zip(made, data, strict=True):
            yield from written(one, of_one)


def test_every_field_of_a_summary_is_there_in_the_order_of_the_file() -> None:
    shown = {name: names_in(part) for name, part in parts_of(summary()).items()}
    parts = list(written(WHOLE, json.loads(json.dumps(WHOLE.to_json()))))
    assert [names for _, names in parts] == [shown[name] for name, _ in parts]
    assert {name for name, _ in parts} == shown.keys()


def test_a_field_of_a_summary_has_its_type_and_its_meaning_and_is_marked_if_a_replay_writes_it() -> None:
    parts = parts_of(summary())
    assert "| `gained` | boolean | yes | Whether the emitted program is faster" in parts["ProgramResult"]
    assert "| `tuned` | [Timing](#timing) or null | yes | Timing of its final script" in parts["DispatchResult"]
    assert (
        "| `share` | number or null |  | Part of the untuned program's time that its calls" in parts["DispatchResult"]
    )
    assert "| `samples` | integer | Number of samples kept; 0 for" in parts["Timing"]


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        (tuple[str, ...], "list of strings"),
        (Mapping[str, Value | None], "object of value or null"),
        (Mapping[str, Mapping[str, float]] | None, "object of objects of numbers or null"),
        (tuple[Timing, ...], "list of [Timing](#timing)"),
        (Verdict, "`right`, `wrong` or `not_checked`"),
    ],
)
def test_a_type_is_shown_as_its_json(kind: Any, shown: str) -> None:
    assert json_type(kind) == shown
    with pytest.raises(KeyError):
        json_type(complex)


def test_an_attribute_has_the_text_of_its_docstring_on_one_line() -> None:
    found = attributes_of(Timing)
    assert found["low_s"] == found["high_s"] == "95 % confidence interval of the median, seconds."
    assert found["ratio_low"].endswith("when the interval is narrow or after few pairs, covers less.")
    assert [*found] == [field.name for field in fields(Timing)]


def test_every_package_is_there_and_says_what_it_is() -> None:
    rows = [row.strip("| ").split(" | ") for row in reference.packages().splitlines()[2:]]
    assert [(int(layer), package) for layer, package, _ in rows] == [
        (number, f"`{name.replace('.', '/')}`") for number, names in enumerate(LAYERS) for name in names
    ]
    assert all(says for _, _, says in rows)


def test_a_command_that_there_is_not_has_no_options() -> None:
    with pytest.raises(KeyError):
        reference.options("nothing")


def test_bars_do_not_end_a_cell() -> None:
    for text in (ROOT / "docs").rglob("*.md"):
        for made in re.findall(r"<!-- made: .*? -->\n(.*?)<!-- end -->", text.read_text(), re.DOTALL):
            tables = re.findall(r"(?:^\|.*\n)+", made, re.MULTILINE)
            for table in tables:
                assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, text
