"""Tables of reference that follow from the code: options, failures, sampling, the store's tables, the packages."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import typer
from sqlalchemy import Column, Table, UniqueConstraint

import mlir_sched
from benchmarks.figures.tables import in_a_cell, markdown_table
from benchmarks.folders import ROOT
from benchmarks.pages.docstrings import first_paragraph, first_paragraph_of
from mlir_sched.cli.app import app
from mlir_sched.database.schema import METADATA
from mlir_sched.errors import FailureClass
from mlir_sched.program.rewrites.layout.rules import RULES
from mlir_sched.sampling import Distribution
from mlir_sched.transform_scripts.schedule import Schedule

_DRAW = "sample_"
"""How the names of a schedule's methods begin that draw a decision."""


def options(command: str) -> str:
    """Return the table of a command's arguments and options, from what ``--help`` says.

    Raises:
        KeyError: There is no such command.
    """
    parameters: list[Any] = typer.main.get_command(app).commands[command].params  # type: ignore[attr-defined]
    rows = [[_written(one), _default(one), in_a_cell(one.help or "")] for one in parameters]
    return markdown_table(["option", "default", "meaning"], rows)


def _written(parameter: Any) -> str:
    """Return how a parameter is written on the command line; options with a short name have that first."""
    value = parameter.metavar or parameter.name.upper()
    if not parameter.opts[0].startswith("-"):
        return f"`{value}`"
    names = [*sorted(parameter.opts, key=len), *parameter.secondary_opts]
    if not parameter.is_flag:
        names[-1] += f" {value}"
    return in_a_cell(", ".join(f"`{name}`" for name in names))


def _default(parameter: Any) -> str:
    if isinstance(parameter.show_default, str):
        return in_a_cell(parameter.show_default)
    if parameter.required:
        return "needed"
    if parameter.default is None or getattr(parameter, "is_flag", False):
        return ""
    return f"`{parameter.default}`" if str(parameter.default) else ""


def failures() -> str:
    """Return the table of the classes of failures."""
    meanings = _documented(FailureClass)
    rows = [[f"`{one}`", meanings[one.name], "yes" if one.is_lasting else "no"] for one in FailureClass]
    return markdown_table(["class", "meaning", "lasts"], rows)


def _documented(of: type) -> dict[str, str]:
    """Return the texts below the members of a class, by the members' names."""
    (node,) = ast.parse(inspect.getsource(of)).body
    assert isinstance(node, ast.ClassDef)
    found = {}
    for member, below in zip(node.body, node.body[1:], strict=False):
        if isinstance(member, ast.Assign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[ast.unparse(member.targets[0])] = str(below.value.value)
    return found


def sampling() -> str:
    """Return the table of the methods of a schedule that draw a decision."""
    return _methods(name for name in _members(Schedule) if name.startswith(_DRAW))


def verbs(topics: str) -> str:
    """Return the table of the other public methods of a schedule.

    Args:
        topics: Names of the files that define them, with blanks between.
    """
    return _methods(
        name
        for name in _members(Schedule)
        if not name.startswith(("_", _DRAW))
        and inspect.isfunction(method := getattr(Schedule, name))
        and method.__module__.rpartition(".")[2] in topics.split()
    )


def _methods(names: Iterable[str]) -> str:
    rows = [[f"`{_call(name)}`", in_a_cell(first_paragraph_of(getattr(Schedule, name)))] for name in names]
    return markdown_table(["method", "what it does"], rows)


def _members(of: type) -> list[str]:
    """Return the names that a class and its bases define, in the order of the sources, the bases' first."""
    return list(dict.fromkeys(name for base in reversed(of.__mro__) for name in vars(base)))


def _call(name: str) -> str:
    """Return how a method is called: its parameters with their defaults, without types."""
    _, *parameters = inspect.signature(getattr(Schedule, name)).parameters.values()
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return f"{name}{inspect.Signature(plain)}"


def modules(target: str) -> str:
    """Return the table of a target's default transform modules, in the order in which they are asked."""
    found = import_module(f"mlir_sched.transform_scripts.{target.replace('-', '_')}").default_modules()
    rows = [[f"`{one.name}`", one.stage.name, in_a_cell(first_paragraph_of(type(one)))] for one in found]
    return markdown_table(["module", "stage", "what it is"], rows)


def distributions() -> str:
    """Return the table of the distributions that decisions are drawn from."""
    rows = [[f"`{one.kind}`", f"`{one.__name__}`", in_a_cell(first_paragraph_of(one))] for one in _kinds(Distribution)]  # type: ignore[type-abstract]
    return markdown_table(["kind", "class", "values"], rows)


def _kinds(base: type[Distribution]) -> Iterator[type[Distribution]]:
    for one in base.__subclasses__():
        if not inspect.isabstract(one):
            yield one
        yield from _kinds(one)


def store_tables() -> str:
    """Return the tables of the record store with their columns and keys."""
    return "\n\n".join(f"### {table.name}\n\n{_columns(table)}" for table in METADATA.sorted_tables)


def _columns(table: Table) -> str:
    together = sorted(
        ", ".join(f"`{column.name}`" for column in constraint.columns)
        for constraint in table.constraints
        if isinstance(constraint, UniqueConstraint) and len(constraint.columns) > 1
    )
    rows = [[f"`{column.name}`", str(column.type), _of_column(column)] for column in table.columns]
    lines = [f"Unique together: {names}." for names in together]
    return "\n\n".join([markdown_table(["column", "type", "what holds"], rows), *lines])


def _of_column(column: Column[Any]) -> str:
    facts = [
        "primary key" if column.primary_key else "",
        "unique" if column.unique else "",
        *(f"of `{key.target_fullname}`" for key in column.foreign_keys),
        "may be NULL" if column.nullable else "",
        column.comment or "",
    ]
    return "; ".join(filter(None, facts))


def api() -> str:
    """Return a line for every name that ``mlir_sched`` exports, which mkdocstrings replaces by its documentation."""
    names = [name for name in mlir_sched.__all__ if not name.startswith("__")]
    names.sort(key=lambda name: (not name[0].islower(), name))  # functions and modules, then classes
    return "\n\n".join(f"::: mlir_sched.{name}" for name in names)


def packages() -> str:
    """Return the table of layers, the lowest first: the packages of ``mlir_sched`` with what they say of themselves."""
    rows = []
    for number, names in enumerate(_layers()):
        rows += [[str(number), f"`{name.replace('.', '/')}`", in_a_cell(_says(name))] for name in names]
    return markdown_table(["layer", "package", "what it is"], rows)


def layouts() -> str:
    """Return the table of the ops that can be computed channels last, with what each does to channels."""
    names = {rule: [name for name, each in RULES.items() if each is rule] for rule in RULES.values()}
    rows = [[", ".join(f"`{name}`" for name in alike), rule.effect] for rule, alike in names.items()]
    return markdown_table(["op", "channels"], rows)


def _layers() -> tuple[tuple[str, ...], ...]:
    """Return the layers as the test of layers has them."""
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.Assign) and _assigns(node, "PLAIN", "LAYERS")]
    found: dict[str, Any] = {}
    exec(compile(tree, "test_layers.py", "exec"), found)
    layers: tuple[tuple[str, ...], ...] = found["LAYERS"]
    return layers


def _assigns(node: ast.Assign, *names: str) -> bool:
    return ast.unparse(node.targets[0]) in names


def _says(package: str) -> str:
    """Return the first sentence of a package's or a file's docstring."""
    path = ROOT / "mlir_sched" / package.replace(".", "/")
    text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
    return first_paragraph(ast.get_docstring(ast.parse(text)) or "")
