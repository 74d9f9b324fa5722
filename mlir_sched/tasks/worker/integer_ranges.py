"""The integers that a program can take: integers used as indices stay inside the tensors that they index.

A language model takes tokens and reads a row of a table for each; a token beyond the table would read memory that does
not belong to the table. The values of an integer argument are followed through a program at the flow phase, into its
dispatches, to the places where they are used as an index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from iree.compiler import ir

from mlir_sched.compiler.operations import symbol_of, walk
from mlir_sched.tasks.worker.call_counts import callee_of, functions_of, workload_size

Range: TypeAlias = tuple[int, int]
"""Smallest and largest integer, both included."""

CAUTIOUS: Range = (0, 1)
"""Range of an argument whose use is not understood: every table has a row 0, and nearly every table a row 1."""

_VALUE_DIALECTS = ("arith.", "math.", "linalg.", "tensor.", "affine.", "flow.tensor.", "hal.tensor.")
_INTEGERS = re.compile(r"(?:^|[x<:])(?:i\d+|index)\b|^!hal\.buffer_view$")
_DIVISIONS = frozenset({"arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi"})
_HARMLESS = frozenset({"util.return", "cf.assert", "iree_tensor_ext.dispatch.tensor.load"})


class IntegerRanges:
    """Follows integer arguments through one program.

    Args:
        module: The program at the flow phase.
    """

    def __init__(self, module: Any) -> None:
        self._functions = functions_of(module)
        self._executables = dict(_exported_functions(module))

    def of(self, argument: Any) -> Range | None:
        """Return the integers that an argument of a public function may hold; None where any will do."""
        return _Flow(self._callee_arguments).of(argument)

    def _callee_arguments(self, call: Any, position: int) -> tuple[Any, ...]:
        """Return the arguments that an operand of a call or dispatch becomes inside the called functions."""
        if call.name == "util.call":
            callee = self._functions.get(callee_of(call) or "")
            return () if callee is None else (callee.regions[0].blocks[0].arguments[position],)
        workload = workload_size(call)
        names = [tuple(ir.SymbolRefAttr(entry).value) for entry in call.attributes["entry_points"]]
        found = [self._executables[name].regions[0].blocks[0].arguments for name in names if name in self._executables]
        return tuple(arguments[position - workload] for arguments in found if position >= workload)


class _Flow:
    """The walk from one argument along everything that is computed from it."""

    def __init__(self, callee_arguments: Callable[[Any, int], tuple[Any, ...]]) -> None:
        self._callee_arguments = callee_arguments
        self._seen: set[Any] = set()
        self._limits: list[int] = []
        self._divides = self._unknown = False

    def of(self, argument: Any) -> Range | None:
        waiting = [argument]
        while waiting:
            value = waiting.pop()
            if value not in self._seen and _holds_integers(value):
                self._seen.add(value)
                for use in value.uses:
                    waiting += self._after(use.owner.operation, use.operand_number)
        if self._unknown:
            return CAUTIOUS
        lowest = 1 if self._divides else 0
        if self._limits:
            return lowest, max(lowest, min(self._limits) - 1)
        return (lowest, 127) if self._divides else None

    def _after(self, op: Any, position: int) -> list[Any]:
        """Return the values that depend on an operand of an op, and note what the op demands of the operand."""
        if op.name in ("flow.dispatch", "util.call"):
            return [*self._callee_arguments(op, position), *op.results]
        if op.name in ("tensor.extract", "tensor.insert") and position > op.name.count("insert"):
            self._index(op.operands[op.name.count("insert")].type, position - 1 - op.name.count("insert"))
            return []
        if op.name in _DIVISIONS and position == 1:
            self._divides = True
        if op.name == "iree_tensor_ext.dispatch.tensor.store":
            return []  # the dispatch's result, which its caller adds
        if op.name not in _HARMLESS and not _computes(op, position):
            self._unknown = True
            return []
        return [*op.results, *_inside(op, position)]

    def _index(self, indexed: Any, dimension: int) -> None:
        if indexed.is_dynamic_dim(dimension):
            self._unknown = True
        else:
            self._limits.append(indexed.shape[dimension])


def _holds_integers(value: Any) -> bool:
    """Say whether a value may hold integers; a value that is converted to floating point is followed no further."""
    return _INTEGERS.search(str(value.type).partition(",")[0]) is not None


def _computes(op: Any, position: int) -> bool:
    """Say whether an op computes only values from an operand, not a position in a tensor or the size of one."""
    places = op.name.startswith(("tensor.", "flow.tensor.")) and isinstance(op.operands[position].type, ir.IndexType)
    return op.name.startswith(_VALUE_DIALECTS) and not places


def _inside(op: Any, position: int) -> Iterator[Any]:
    """Yield the block argument that an operand becomes in the body of a structured op."""
    for region in op.regions:
        if op.name.startswith("linalg.") and region.blocks:
            yield region.blocks[0].arguments[position]


def _exported_functions(module: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield (executable, export) and the function of every dispatch."""
    for op in module.regions[0].blocks[0]:
        executable = op.operation
        if executable.name != "flow.executable":
            continue
        inner = {symbol_of(f): f for f in walk(executable) if f.name == "func.func"}
        for export in walk(executable):
            if export.name == "flow.executable.export":
                function = inner.get(str(ir.FlatSymbolRefAttr(export.attributes["function_ref"]).value))
                if function is not None:
                    yield (symbol_of(executable), symbol_of(export)), function
