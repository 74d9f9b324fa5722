"""Tables of reference have everything that the code has."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from folders import ROOT
from test_layers import LAYERS

from benchmarks.pages import reference
from mlir_sched.database.schema import METADATA
from mlir_sched.errors import FailureClass
from mlir_sched.sampling import Distribution, PerfectTile
from mlir_sched.transform_scripts.schedule import Schedule


def names_in(table: str) -> list[str]:
    """Return the first cells of a Markdown table, without what follows a name."""
    return re.findall(r"^\| `(\w+)", table, re.MULTILINE)


def test_every_class_of_failures_has_a_meaning() -> None:
    rows = reference.failures().splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == [f"| `{one}`" for one in FailureClass]
    assert all(len(row.split(" | ")[1].split()) > 3 for row in rows)
    assert [row.endswith("| yes |") for row in rows] == [one.is_lasting for one in FailureClass]


def test_every_draw_of_a_schedule_is_there_with_its_parameters() -> None:
    table = reference.sampling()
    assert sorted(names_in(table)) == sorted(name for name in dir(Schedule) if name.startswith("sample_"))
    assert "`sample_int(name, low, high, *, step=1, static=False)` | Draw an integer of `low..high`." in table


def test_every_other_method_of_a_schedule_is_on_the_page_of_verbs() -> None:
    page = (ROOT / "docs" / "reference" / "verbs.md").read_text()
    methods = [name for name in dir(Schedule) if callable(getattr(Schedule, name)) and not name.startswith("_")]
    shown = re.findall(r"^\| `(\w+)\(", page, re.MULTILINE)
    assert sorted(shown) == sorted(name for name in methods if not name.startswith("sample_"))


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
    parts = dict(re.findall(r"^### (\w+)\n\n((?:.|\n)*?)(?=\n### |\Z)", reference.store_tables(), re.MULTILINE))
    assert parts.keys() == METADATA.tables.keys()
    for name, table in METADATA.tables.items():
        assert names_in(parts[name]) == [column.name for column in table.columns]


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
