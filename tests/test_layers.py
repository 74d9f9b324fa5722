"""The layers import downward only, and only the compiler's side touches IREE."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from folders import ROOT

PLAIN = ("attributes", "version", "errors", "payload", "sampling", "trace", "outcome", "parameters", "reasons", "text")
"""Modules of plain data, which need neither MLIR nor IREE."""
LAYERS = (
    PLAIN,
    ("models",),
    ("search", "processes"),
    ("compiler",),
    ("targets", "compiler.worker"),
    ("tasks", "transform_scripts", "tuned_folder"),
    ("space", "database", "runner"),
    ("library", "runner.worker"),
    ("program.rewrites", "program"),
    ("tuning",),
    ("emission", "doctor", "testing"),
    ("pipeline", "replaying", "deployment"),
    ("cli",),
)
"""Packages and files of ``mlir_sched``, the lowest first: what imports another is further down in this list."""


def imports_of(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports when it is imported itself (not inside functions)."""
    yield from imported_by(ast.parse(path.read_text()).body)


def all_imports_of(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports anywhere."""
    yield from imported_by(ast.walk(ast.parse(path.read_text())))


def imported_by(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inside = ROOT.joinpath(*node.module.split("."), f"{alias.name}.py")
                yield f"{node.module}.{alias.name}" if inside.exists() else node.module


def is_inside(module: str, package: str) -> bool:
    """Say whether a module is a package, or is in it."""
    return f"{module}.".startswith(f"{package}.")


def files_of(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", files_of("search", "models"), ids=lambda p: p.name)
def test_search_and_models_import_plain_data_alone(path: Path) -> None:
    allowed = ("mlir_sched.search", "mlir_sched.models", *(f"mlir_sched.{name}" for name in PLAIN))
    ours = [name for name in imports_of(path) if name.split(".")[0] == "mlir_sched"]
    assert [name for name in ours if not any(is_inside(name, package) for package in allowed)] == []
    assert [name for name in imports_of(path) if name.split(".")[0] == "iree"] == []


def test_packages_import_downwards_only() -> None:
    level = {f"mlir_sched.{name}": number for number, names in enumerate(LAYERS) for name in names}

    def package_of(module: str) -> str:
        return max((name for name in level if is_inside(module, name)), key=len, default=module)

    upward = []
    for path in files_of("mlir_sched", "search", "models", "transform_scripts"):
        name = name_of(path)
        if name == "mlir_sched":
            continue
        assert package_of(name) in level, f"{name} is in no layer"
        ours = {package_of(other) for other in all_imports_of(path) if other.startswith("mlir_sched.")}
        own = max(1, level[package_of(name)])  # plain data may build on plain data
        upward += [(name, other) for other in ours - {package_of(name)} if level[other] >= own]
    assert upward == []


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
        graph[name_of(path)] = {i for i in imports_of(path) if i.startswith("mlir_sched.")}
    assert list(circles(graph)) == []


def name_of(path: Path) -> str:
    """Return the module of a file."""
    relative = path.relative_to(ROOT).with_suffix("")
    parts = relative.parts if relative.parts[0] == "mlir_sched" else ("mlir_sched", *relative.parts)
    return ".".join(parts).removesuffix(".__init__")


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
