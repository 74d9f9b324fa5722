"""The documentation names what there is: links, files, functions, options, and excerpts of the code as it stands."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from folders import ROOT
from store_writer import record
from stored_records import TASK

from mlir_sched.cli.app import app
from mlir_sched.database import RecordStore

DOCUMENTS = [
    *sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "tests" / "README.md",
]  # fmt: skip
PACKAGES = ("mlir_sched", "transform_scripts", "search", "models")
FOLDERS = (*PACKAGES, "benchmarks", "tests", "examples")
IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
METHOD = re.compile(r"\b[A-Z]\w+\.[a-z]\w*\b")

every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def python_files(folders: tuple[str, ...]) -> Iterator[Path]:
    for folder in folders:
        for where, inside, names in os.walk(ROOT / folder):
            inside[:] = [name for name in inside if not name.startswith(".")]  # environments of benchmarks
            yield from (Path(where, name) for name in names if name.endswith(".py"))


@cache
def parts_of_files() -> list[tuple[str, ...]]:
    """Return the parts of the path of every Python file."""
    return [path.relative_to(ROOT).parts for path in python_files(FOLDERS)]


@cache
def definitions() -> frozenset[str]:
    """Return every function, and every member of a class as ``Class.member``."""
    return frozenset(_definitions())


def _definitions() -> Iterator[str]:
    for path in python_files(PACKAGES):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield node.name
            if isinstance(node, ast.ClassDef):
                yield from (f"{node.name}.{member}" for member in members(node))


def members(node: ast.ClassDef) -> Iterator[str]:
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            yield part.name
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            yield part.target.id


def blocks(document: Path, language: str) -> list[str]:
    """Return the code blocks of a document in a language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@every_document
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


@every_document
def test_files_that_are_named_exist(document: Path) -> None:
    files = parts_of_files()
    for word in IN_BACKTICKS.findall(document.read_text()):
        if re.fullmatch(r"[\w/]+\.py", word):
            parts = tuple(word.split("/"))
            assert any(path[-len(parts) :] == parts for path in files), word


@every_document
def test_targets_of_make_that_are_named_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:^|`)make ([a-z]+)", document.read_text(), re.MULTILINE)
    assert set(named) <= targets


@every_document
def test_methods_that_are_named_exist(document: Path) -> None:
    known = definitions()
    classes = {name.split(".")[0] for name in known if "." in name}
    for word in IN_BACKTICKS.findall(document.read_text()):
        for method in METHOD.findall(word):
            assert method in known or method.split(".")[0] not in classes, method


def test_the_walk_of_a_payload_names_functions_that_exist() -> None:
    walk = next(iter(blocks(ROOT / "docs" / "architecture.md", "")))
    known = definitions()
    methods = METHOD.findall(walk)
    functions = re.findall(r"^   \|  [\w/, ]*?/ +([a-z_]+)[:,]", walk, re.MULTILINE)
    assert len(methods) > 8
    assert functions
    assert [name for name in (*methods, *functions) if name not in known] == []


def test_every_option_of_every_command_is_documented_and_every_documented_option_exists() -> None:
    command: Any = typer.main.get_command(app)
    sections = (ROOT / "docs" / "cli.md").read_text().split("\n## ")
    for name, one in command.commands.items():
        (section,) = (text for text in sections if text.startswith(f"{name}\n"))
        rows = [line for line in section.splitlines() if line.startswith("| `-")]
        documented = [option for row in rows for option in re.findall(r"`(--[a-z-]+)", row.split(" | ")[0])]
        options = {option for one in one.params for option in (*one.opts, *one.secondary_opts) if option[:2] == "--"}
        assert set(documented) == options, name
        assert len(documented) == len(options), f"{name}: an option has two rows"


def commands_shown(document: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield (command, options) of every line of a document's code blocks that calls ``mlir-sched COMMAND``."""
    for block in (*blocks(document, "sh"), *blocks(document, "")):
        for line in block.replace("\\\n", " ").splitlines():
            for called in re.findall(r"(?:^|\s|/)mlir-sched ([a-z]+)((?: [^&#|]*)?)", line):
                name, rest = called
                yield name, re.findall(r"(?<=\s)(--?[a-z][\w-]*)", f" {rest}".partition(" -- ")[0])


@every_document
def test_commands_that_are_shown_exist_with_their_options(document: Path) -> None:
    command: Any = typer.main.get_command(app)
    for name, options in commands_shown(document):
        assert name in command.commands, f"mlir-sched {name}"
        known = {option for one in command.commands[name].params for option in (*one.opts, *one.secondary_opts)}
        assert set(options) - {"--help"} <= known, f"mlir-sched {name} {options}"


def test_commands_are_found_in_the_documents() -> None:
    found = list(commands_shown(ROOT / "README.md"))
    assert ("tune", ["-o", "--trials", "--threads"]) in found
    assert ("tune", ["-o"]) in found


def test_the_readme_is_short_and_has_short_tables() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 130
    assert text.count("![") == 1
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert [len(table.splitlines()) - 2 <= 6 for table in tables] == [True, True], "two tables of at most six rows"
    made = re.findall(r"<!-- made: results (.*?)[;/].*?-->(.*?)<!-- end -->", text, re.DOTALL)
    assert len(made) == 2, "figures are made from data"
    assert all(f"docs/results/{machine}.md" in text for machine, _ in made), "a table says how it was made"


def test_the_transcript_of_the_readme_is_of_the_command_that_make_runs() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (recipe,) = re.findall(r"^tune:.*\n\t(.*)", makefile, re.MULTILINE)
    values = dict(re.findall(r"^(\w+) [?:]?= (.*)", makefile, re.MULTILINE))
    for _ in range(3):
        recipe = re.sub(r"\$\((\w+)\)", lambda name: values[name[1]], recipe)
    (shown,) = re.findall(r"^\$ make tune\n(.*)", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert shown == recipe


@pytest.mark.parametrize(
    ("name", "file", "document"),
    [
        ("OuterProduct", "examples/custom_transform_module.py", "start/first-module.md"),
        ("registers", "transform_scripts/llvm_cpu/contraction.py", "transform-modules.md"),
    ],
)
def test_excerpts_are_the_code_as_it_stands(name: str, file: str, document: str) -> None:
    shown = "\n".join(blocks(ROOT / "docs" / document, "python"))
    excerpt = shown[re.search(rf"^(class|def) {name}\b", shown, re.MULTILINE).start() :]  # type: ignore[union-attr]
    excerpt = re.split(r"\n(?=\S)", excerpt)[0]
    code = ast.parse((ROOT / file).read_text())
    (defined,) = (node for node in code.body if getattr(node, "name", "") == name)
    assert plain(ast.parse(excerpt).body[0]) == plain(defined)


def plain(node: ast.AST) -> str:
    """Return code without annotations and docstrings, and without ``del`` of arguments that are not used."""
    for part in ast.walk(node):
        if isinstance(part, ast.arg):
            part.annotation = None
        if isinstance(part, ast.FunctionDef):
            part.returns = None
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            part.body = [unannotated(one) for one in part.body if not is_aside(one)]
    return ast.unparse(ast.fix_missing_locations(node))


def is_aside(node: ast.stmt) -> bool:
    return isinstance(node, ast.Delete) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def unannotated(node: ast.stmt) -> ast.stmt:
    return ast.Assign([node.target], node.value) if isinstance(node, ast.AnnAssign) and node.value else node


def test_the_store_is_read_as_the_documentation_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with RecordStore.open("tuning.db") as store:
        store.add_task(TASK)
        store.add([record("a", 0, 0), record("a", 0, 1)])
        store.begin_search("search")
        store.save_cost_model("search", b"trees")
    (code,) = blocks(ROOT / "docs" / "store.md", "python")
    found: dict[str, object] = {}
    exec(code, found)
    assert capsys.readouterr().out.startswith(f"{TASK.name} threads=1 ")
    assert found["model"] == b"trees"
