"""The layers import downward only, and only the compiler's side touches IREE."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from folders import ROOT

PLAIN = (
    "attributes",
    "errors",
    "payload",
    "sampling",
    "trace",
    "outcome",
    "text",
)
"""Modules of plain data, which need neither MLIR nor IREE."""
LAYERS = (
    PLAIN,
    ("plugins", "processes", "tensors"),
    ("compiler",),
    ("targets", "compiler.worker"),
    ("models",),
    ("search",),
    ("tasks", "transform_scripts"),
    ("tasks.worker", "space", "database", "runner", "gpu_model"),
    ("library", "runner.worker", "tuned_folder"),
    ("corpus",),
    ("program.rewrites",),
    ("program",),
    ("program.worker",),
    ("program.variants",),
    ("evaluation",),
    ("tuning",),
    ("preflight",),
    ("emission", "testing"),
    ("meter",),
    ("pipeline", "replaying", "deployment"),
    ("cli",),
)
"""Packages and files of ``mlir_sched``, the lowest first: what imports another is further down in this list."""
LANGUAGE = ("script", "tracking", "verbs")
"""Folders of ``transform_scripts`` that are parts of the language; the others hold modules."""
LEVEL = {f"mlir_sched.{name}": number for number, names in enumerate(LAYERS) for name in names}


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
    upward = []
    for name, path in modules():
        assert package_of(name) in LEVEL, f"{name} is in no layer"
        ours = {package_of(other) for other in all_imports_of(path) if other.startswith("mlir_sched.")}
        own = max(1, LEVEL[package_of(name)])  # plain data may build on plain data
        upward += [(name, other) for other in ours - {package_of(name)} if LEVEL[other] >= own]
    assert upward == []


def test_a_parent_names_what_its_children_run_downwards_or_in_its_own_worker_package() -> None:
    upward, found = [], set()
    for name, path in modules():
        for program in programs_named_in(path):
            found.add(program)
            own, other = package_of(name), package_of(program.partition(":")[0])
            if LEVEL[other] > LEVEL[own] and other != f"{own}.worker":
                upward.append((name, program))
    assert upward == []
    assert {"mlir_sched.compiler.worker.main", "mlir_sched.compiler.worker.candidate:compile_candidate"} <= found


def test_jobs_that_are_named_exist() -> None:
    jobs = {job for _, path in modules() for job in programs_named_in(path) if ":" in job}
    assert jobs
    for module, _, function in (job.partition(":") for job in jobs):
        body = ast.parse(file_of(module).read_text()).body
        assert function in [node.name for node in body if isinstance(node, ast.FunctionDef)], f"{module}:{function}"


def modules() -> list[tuple[str, Path]]:
    """Return (name, file) of every module of the package."""
    files = files_of("mlir_sched", "search", "models", "transform_scripts")
    return [(name_of(path), path) for path in files if name_of(path) != "mlir_sched"]


def package_of(module: str) -> str:
    return max((name for name in LEVEL if is_inside(module, name)), key=len, default=module)


def programs_named_in(path: Path) -> Iterator[str]:
    """Yield the strings of a file that name what a child runs: a module, or a job as ``module:function``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            module, colon, _ = node.value.partition(":")
            if re.fullmatch(r"mlir_sched(\.\w+)+", module) and (colon or file_of(module).exists()):
                yield node.value


def file_of(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


def test_transform_modules_do_not_import_the_bindings() -> None:
    users = [p for p in files_of("transform_scripts") if any(i.startswith("iree") for i in imports_of(p))]
    assert users == [ROOT / "transform_scripts" / "script" / f"{name}.py" for name in ("building", "form", "reading")]


def test_the_schedule_language_imports_no_transform_modules() -> None:
    root = "mlir_sched.transform_scripts"
    folder = ROOT / "transform_scripts"
    modules = [f"{root}.{each.name}" for each in folder.iterdir() if each.is_dir() and each.name not in LANGUAGE]
    assert {f"{root}.{name}" for name in ("gpu", "llvm_cpu", "vulkan")} <= set(modules)
    files = [*folder.glob("*.py"), *files_of(*(f"transform_scripts/{name}" for name in LANGUAGE))]
    language = [(path, other) for path in files for other in all_imports_of(path)]
    assert [(p.name, i) for p, i in language if any(is_inside(i, module) for module in modules)] == []


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


def test_no_decision_hangs_on_a_clock_that_may_be_set_back() -> None:
    asking = [path for _, path in modules() if re.search(r"time\.time\(|datetime\.now\(|utcnow\(", path.read_text())]
    assert [path.name for path in asking] == ["record.py"], "records say when they were made, and nothing more"
