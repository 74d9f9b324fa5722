"""The layers import downward only, and only the compiler's side touches IREE."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLAIN = ("sampling", "trace", "payload", "task", "measurement", "errors", "features", "target", "result")
"""Modules of plain data, which need neither MLIR nor IREE."""


def imports_of(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports when it is imported itself (not inside functions)."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inside = ROOT.joinpath(*node.module.split("."), f"{alias.name}.py")
                yield f"{node.module}.{alias.name}" if inside.exists() else node.module


def files_of(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", files_of("search", "models"), ids=lambda p: p.name)
def test_search_and_models_import_plain_data_alone(path: Path) -> None:
    allowed = ("mlir_sched.search", "mlir_sched.models", *(f"mlir_sched.{name}" for name in PLAIN))
    ours = [name for name in imports_of(path) if name.startswith("mlir_sched")]
    assert [name for name in ours if not name.startswith(allowed)] == []
    assert [name for name in imports_of(path) if name.split(".")[0] == "iree"] == []


def test_transform_modules_do_not_import_the_bindings() -> None:
    users = [p.name for p in files_of("transform_scripts") if any(i.startswith("iree") for i in imports_of(p))]
    assert users == ["script.py", "script_form.py", "script_reading.py"]


@pytest.mark.parametrize("name", PLAIN)
def test_plain_data_needs_no_iree(name: str) -> None:
    found = [path for path in files_of("mlir_sched") if path.stem == name and path.parent.name == "mlir_sched"]
    assert found
    assert [i for path in found for i in imports_of(path) if i.split(".")[0] == "iree"] == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for path in files_of("mlir_sched", "search", "models", "transform_scripts"):
        relative = path.relative_to(ROOT).with_suffix("")
        parts = relative.parts if relative.parts[0] == "mlir_sched" else ("mlir_sched", *relative.parts)
        name = ".".join(parts).removesuffix(".__init__")
        graph[name] = {i for i in imports_of(path) if i.startswith("mlir_sched.")}
    assert list(circles(graph)) == []


def circles(graph: dict[str, set[str]]) -> Iterator[tuple[str, ...]]:
    """Yield one circle per module that reaches itself (a package's ``__init__`` counts as the module)."""
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if name in path:
            yield (*path[path.index(name) :], name)
        elif name in graph and name not in done:
            for other in sorted(graph[name]):
                yield from visit(other, (*path, name))
            done.add(name)

    for name in sorted(graph):
        yield from visit(name, ())
