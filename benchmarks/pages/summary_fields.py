"""The tables of ``summary.json``: a part per class that it is written from, with the text of each field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import StrEnum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from benchmarks.figures.tables import in_a_cell, markdown_table
from benchmarks.pages.docstrings import attributes_of, first_paragraph_of
from mlir_sched.replaying.replayed_folder import REPLAYED
from mlir_sched.sampling import Value
from mlir_sched.tuned_folder.result import SUMMARISED, TuneResult

_JSON: Mapping[Any, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null",
}  # fmt: skip


def summary() -> str:
    """Return a part per class of ``summary.json``: its fields with their types and meanings."""
    return "\n\n".join(_part(one) for one in summarised_classes())


def summarised_classes() -> list[type]:
    """Return the classes that ``summary.json`` is written from, each behind one that has it as a part."""
    found: list[type] = [TuneResult]
    for one in found:
        found += dict.fromkeys(part for kind in types_of(one).values() for part in _classes(kind) if part not in found)
    return found


def types_of(one: type) -> dict[str, Any]:
    """Return the types of what ``summary.json`` has of a class, by name, in the order of the file."""
    hints = get_type_hints(one)
    written = {field.name: hints[field.name] for field in fields(one)}
    return written | {name: get_type_hints(getattr(one, name).fget)["return"] for name in SUMMARISED.get(one, ())}


def json_type(kind: Any) -> str:
    """Return what a type is in JSON; a class is a link to its part.

    Raises:
        KeyError: Nothing of this type is written.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _one_of(dict.fromkeys(_named(arguments)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"object of {_several(arguments[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"list of {_several(arguments[0])}"
    if is_dataclass(kind):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"  # type: ignore[union-attr]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _one_of(f"`{one}`" for one in kind)
    return _JSON[kind]


def _named(kinds: Sequence[Any]) -> Iterator[str]:
    """Yield what types are in JSON; those that the value of a decision may have are one."""
    of_decisions = get_args(Value) if {*kinds} >= {*get_args(Value)} else ()
    if of_decisions:
        yield "value"
    yield from (json_type(kind) for kind in kinds if kind not in of_decisions)


def _one_of(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _several(kind: Any) -> str:
    """Return what several values of a type are in JSON."""
    one = json_type(kind)
    return one if " or " in one else re.sub(r"^(\w+)", r"\1s", one)


def _classes(kind: Any) -> Iterator[type]:
    """Yield the classes of a type whose fields are written."""
    if isinstance(kind, type) and is_dataclass(kind):
        yield kind
    for argument in get_args(kind):
        yield from _classes(argument)


def _part(one: type) -> str:
    meanings, kept = attributes_of(one), REPLAYED.get(one)
    meanings |= {name: first_paragraph_of(getattr(one, name)) for name in SUMMARISED.get(one, ())}
    header = ["field", "type", *([] if kept is None else ["replayed"]), "meaning"]
    rows = [
        [
            f"`{name}`",
            json_type(kind),
            *([] if kept is None else ["yes" if name in kept else ""]),
            in_a_cell(re.sub(r"\bNone\b", "null", meanings[name])),
        ]
        for name, kind in types_of(one).items()
    ]
    return f"### {one.__name__}\n\n{in_a_cell(first_paragraph_of(one))}\n\n{markdown_table(header, rows)}"
