"""A digest of one dispatch's code as IREE is about to lower it, equal for the stand-alone program and the whole model.

The digest leaves out what differs between these two programs without being code: names, the numbers, order, offsets and
layouts of the bindings, the numbers and layouts of the constants that are loaded, the order of other constants, and the
attributes that this package adds.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from typing import Any

from iree.compiler import ir

from mlir_sched.attributes import APPLIED, SEQUENCE_CHOSEN
from mlir_sched.compiler.operations import dispatch_configs, named_attributes, producer, symbol_of, walk

BINDING = "hal.interface.binding.subspan"
LOADED = "hal.interface.constant.load"
_CONSTANT = "arith.constant"
_ALIGNMENT = "memref.assume_alignment"
_NAMES = frozenset({"sym_name", "function_ref", APPLIED, SEQUENCE_CHOSEN})
_PLACES = frozenset({"layout", "ordinal"})
"""Attributes of a loaded constant that say where it lies among those of all bindings and offsets of a program."""
_STRIDED = re.compile(r"memref<((?:(?:\d+|\?)x)*)([^<>,]+), strided<\[([\d, ]*)\](?:, offset: (?:\d+|\?))?>")

_MAPPED = re.compile(r"memref<((?:(?:\d+|\?)x)*)([^<>,]+), affine_map<\([d\d, ]*\)(?:\[s0\])? -> \(([^()]*)\)>")
_TERM = re.compile(r"d(\d+)(?: \* (\d+))?|s0|\d+")


def code_digest(function: Any) -> str:
    """Return a SHA-256 of a dispatch's function and of its number of workgroups, in hexadecimal.

    Args:
        function: The dispatch's ``func.func`` inside a program at the executable-configurations phase.
    """
    lines = [*_Canonical().lines(function)]
    for config in dispatch_configs(function):
        if _names(config, function):
            lines += _Canonical().lines(config)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class _Canonical:
    """A writer of operations that numbers values in the order of their first use or definition."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._count = 0

    def lines(self, root: Any) -> Iterator[str]:
        """Yield the lines of the operations at and below ``root``, without constants and address computations."""
        hidden = _addresses(root)
        yield from self._region_lines(root, hidden)

    def _region_lines(self, op: Any, hidden: set[Any]) -> Iterator[str]:
        operands = ", ".join(map(self._name, op.operands))
        results = ", ".join(map(self._name, op.results))
        types = ", ".join(plain_type(str(value.type)) for value in op.results)
        yield f"{results} = {op.name}({operands}) {{{_attributes(op)}}} : {types}"
        for region in op.regions:
            for block in region:
                yield f"^({', '.join(f'{self._name(v)}: {plain_type(str(v.type))}' for v in block.arguments)}):"
                for inner in block:
                    if inner.operation not in hidden:
                        yield from self._region_lines(inner.operation, hidden)
                yield "end"

    def _name(self, value: Any) -> str:
        if value in self._names:
            return self._names[value]
        made_by = producer(value)
        if made_by is not None and made_by.name == _CONSTANT:
            name = f"{made_by.attributes['value']}"
        elif made_by is not None and made_by.name == _ALIGNMENT:
            name = self._name(made_by.operands[0])
        else:
            kind = "%"
            if made_by is not None and made_by.name == BINDING:
                kind = f"binding<{plain_type(str(value.type))}>"
            name = f"{kind}{self._count}"
            self._count += 1
        self._names[value] = name
        return name


def plain_type(text: str) -> str:
    """Return a type without a memref's offset, and without its strides where they are those of a whole buffer."""

    def plain(found: re.Match[str]) -> str:
        return _without_offset(found, [int(stride) for stride in found[3].split(",") if stride.strip()])

    def plain_map(found: re.Match[str]) -> str:
        strides = _strides(found[3], found[1].count("x"))
        return found[0] if strides is None else _without_offset(found, strides)

    return _MAPPED.sub(plain_map, _STRIDED.sub(plain, text))


def _without_offset(found: re.Match[str], strides: list[int]) -> str:
    shape = [size for size in found[1].split("x") if size]
    inner = [shape[i + 1 :] for i in range(len(shape))]
    whole = [None if "?" in sizes else math.prod(map(int, sizes)) for sizes in inner]
    kept = "" if strides == whole else f", strided<{strides}>"
    return f"memref<{found[1]}{found[2]}{kept}"


def _strides(expression: str, rank: int) -> list[int] | None:
    """Return the strides in a sum like ``d0 * 48 + d1 + s0``, ignoring its offset; None for any other expression."""
    strides = [0] * rank
    for term in expression.split(" + "):
        found = _TERM.fullmatch(term)
        if found is None:
            return None
        if found[1] is not None:
            strides[int(found[1])] += int(found[2] or 1)
    return strides


def _addresses(root: Any) -> set[Any]:
    """Return constants, bindings, alignment assumptions, and the ops that only compute where the bindings begin."""
    operations = [*walk(root)]
    hidden = {op for op in operations if op.name in (_CONSTANT, _ALIGNMENT, BINDING)}
    for op in reversed(operations):
        users = [use.owner.operation for value in op.results for use in value.uses]
        if op not in hidden and not op.regions and users and all(u in hidden and u.name != _ALIGNMENT for u in users):
            hidden.add(op)
    return hidden


def _attributes(op: Any) -> str:
    """Return an op's attributes as text, without false ones: the printer drops these where false is the default."""
    left_out = _NAMES | _PLACES if op.name == LOADED else _NAMES
    found = sorted((a.name, plain_type(str(a.attr))) for a in named_attributes(op) if a.name not in left_out)
    return ", ".join(f"{name} = {text}" for name, text in found if text != "false")


def _names(config: Any, function: Any) -> bool:
    """Say whether a dispatch configuration belongs to a function."""
    named: str = ir.FlatSymbolRefAttr(config.attributes["function_ref"]).value
    return named == symbol_of(function)
