"""The number of calls that one run of a model makes of each dispatch."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import constant_of, symbol_of
from mlir_sched.tasks.worker.constants import changed_globals, is_constant


@dataclass(frozen=True)
class DispatchCall:
    """The calls of one dispatch for the same workload.

    Attributes:
        entry: The dispatch's symbol.
        ops: The ``flow.dispatch`` ops of these calls, in program order.
        weight: Calls per run of the model, >= 1.
        text: The entry point and the workload: differs from that of calls with another workload.
        constants: Positions, among the tensors that the dispatch takes, of those that are constants of the program in
            all these calls; each call may have constants of its own.
        may_not_run: Whether a run of the model may make none of these calls, as with one inside of ``scf.if``.
    """

    entry: str
    ops: tuple[Any, ...]
    weight: int
    text: str
    constants: frozenset[int]
    may_not_run: bool = False


_UNKNOWN_COUNT = frozenset({"scf.while", "scf.if", "scf.index_switch", "scf.parallel", "scf.forall"})


def count_calls(module: Any, run: Collection[str]) -> tuple[tuple[DispatchCall, ...], tuple[str, ...]]:
    """Return the dispatch calls of some functions, in program order, and notes on counts that are not exact.

    Initializers run once, when the program is loaded, and do not count.
    """
    functions = functions_of(module)
    found: dict[tuple[str, str], DispatchCall] = {}
    notes: list[str] = []
    changed = changed_globals(module)
    for name in uncalled(functions):
        if name in run:
            _count(functions[name], _Times(1), functions, found, notes, changed)
    return tuple(call for call in found.values() if call.weight), tuple(dict.fromkeys(notes))


def functions_of(module: Any) -> dict[str, Any]:
    """Return the host functions by name."""
    operations = [op.operation for op in module.regions[0].blocks[0]]
    return {symbol_of(op): op for op in operations if op.name == "util.func"}


def uncalled(functions: dict[str, Any]) -> list[str]:
    """Return the names of the functions that no function calls, in program order."""
    called = {callee_of(inner) for function in functions.values() for inner in operations_below(function)}
    return [name for name in functions if name not in called]


def operations_below(op: Any) -> Iterator[Any]:
    """Yield every operation inside another, in program order."""
    for inner, _ in _walk(op, _Times(1), []):
        yield inner


def callee_of(op: Any) -> str | None:
    """Return the name of the function that a ``util.call`` calls, None for any other operation."""
    return str(ir.FlatSymbolRefAttr(op.attributes["callee"]).value) if op.name == "util.call" else None


def is_public(function: Any) -> bool:
    """Say whether a function can be called from outside."""
    return "sym_visibility" not in function.attributes or "public" in str(function.attributes["sym_visibility"])


def entry_of(dispatch: Any) -> str:
    """Return the symbol of the code that a ``flow.dispatch`` calls."""
    return str(ir.SymbolRefAttr(dispatch.attributes["entry_points"][0]).value[-1])


def workload_size(dispatch: Any) -> int:
    """Return how many of the first operands of a ``flow.dispatch`` are workload values; its code takes the others."""
    return int(next(iter(ir.DenseI32ArrayAttr(dispatch.attributes["operandSegmentSizes"]))))


def tied_operands(dispatch: Any) -> list[int]:
    """Return for each result of a ``flow.dispatch`` which operand of its code, counted from 0, it overwrites, or -1."""
    if "tied_operands" not in dispatch.attributes:
        return [-1] * len(dispatch.results)
    return [int(ir.IntegerAttr(position).value) for position in dispatch.attributes["tied_operands"]]


def tensor_operands(dispatch: Any) -> list[Any]:
    """Return the tensors that the code of a ``flow.dispatch`` takes, in order."""
    operands = list(dispatch.operands)[workload_size(dispatch) :]
    return [value for value in operands if isinstance(value.type, ir.ShapedType)]


@dataclass(frozen=True)
class _Times:
    """How often something runs, and whether that may be never because the number is not known."""

    number: int
    may_be_none: bool = False

    def of(self, inner: _Times) -> _Times:
        """Return how often something runs in all, given how often it does each time."""
        return _Times(self.number * inner.number, self.may_be_none or inner.may_be_none)


def _count(
    function: Any,
    times: _Times,
    functions: dict[str, Any],
    found: dict[tuple[str, str], DispatchCall],
    notes: list[str],
    changed: Collection[str],
) -> None:
    for op, each in _walk(function, times, notes):
        callee = callee_of(op)
        if callee is not None and callee in functions:
            _count(functions[callee], each, functions, found, notes, changed)
        if op.name == "flow.dispatch":
            _add(op, each, found, changed)


def _add(op: Any, times: _Times, found: dict[tuple[str, str], DispatchCall], changed: Collection[str]) -> None:
    entry = entry_of(op)
    workload = list(op.operands)[: workload_size(op)]
    key = (str(op.attributes["entry_points"][0]), ",".join(str(constant_of(value)) for value in workload))
    constants = frozenset(position for position, value in enumerate(tensor_operands(op)) if is_constant(value, changed))
    if (known := found.get(key)) is None:
        found[key] = DispatchCall(entry, (op,), times.number, str(key), constants, times.may_be_none)
    else:
        found[key] = replace(
            known,
            ops=(*known.ops, op),
            weight=known.weight + times.number,
            constants=known.constants & constants,
            may_not_run=known.may_not_run and times.may_be_none,
        )


def _walk(op: Any, times: _Times, notes: list[str]) -> Iterator[tuple[Any, _Times]]:
    """Yield every op inside ``op`` with how often it runs if the body of ``op`` runs ``times`` times."""
    for region in op.regions:
        for block in region:
            for child in block:
                inner = child.operation
                yield inner, times
                if inner.regions:
                    yield from _walk(inner, times.of(_trip_count(inner, notes)), notes)


def _trip_count(op: Any, notes: list[str]) -> _Times:
    if op.name == "scf.for":
        bounds = [constant_of(value) for value in op.operands[:3]]
        if all(bound is not None for bound in bounds):
            low, high, step = (ir.IntegerAttr(bound).value for bound in bounds)
            return _Times(max(0, -(-(high - low) // step)))
        notes.append("a loop's trip count is not constant: its dispatches count as run once")
        return _Times(1, may_be_none=True)
    if op.name in _UNKNOWN_COUNT:
        notes.append(f"{op.name} in the program: the dispatches inside count as run once")
        return _Times(1, may_be_none=True)
    return _Times(1)
