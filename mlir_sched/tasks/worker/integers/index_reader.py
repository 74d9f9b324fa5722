"""Reads integers of a program at the flow phase as expressions over the program's arguments.

A value is read backwards from where it is used, through casts, bodies of structured ops, loads and stores, and out of a
dispatch into its caller; a dispatch that is called twice is read once per call. What is not followed becomes
:class:`~mlir_sched.tasks.worker.integers.index_expressions.Unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from iree.compiler import ir

from mlir_sched.compiler.operations import producer, symbol_of, walk
from mlir_sched.tasks.worker.call_counts import callee_of, functions_of, tied_operands
from mlir_sched.tasks.worker.integers.affine_expressions import affine_results
from mlir_sched.tasks.worker.integers.index_expressions import (
    NOTHING,
    Argument,
    Carried,
    Comparison,
    Computed,
    Constant,
    Element,
    Expression,
    OneOf,
    Parameter,
    Selected,
    Unknown,
)
from mlir_sched.tasks.worker.integers.intervals import INDEX_BITS, RULES

DEEPEST = 120
"""Most operations, one after the other, through which a value is followed; more would exceed Python's stack."""
SAME = frozenset(
    {
        "flow.dispatch.tie_shape",
        "flow.tensor.clone",
        "flow.tensor.reshape",
        "flow.tensor.slice",
        "flow.tensor.splat",
        "flow.tensor.transfer",
        "hal.tensor.alias",
        "hal.tensor.export",
        "hal.tensor.import",
        "iree_tensor_ext.compute_barrier.end",
        "iree_tensor_ext.compute_barrier.start",
        "iree_tensor_ext.dispatch.workload.ordinal",
        "linalg.broadcast",
        "linalg.copy",
        "linalg.fill",
        "linalg.transpose",
        "tensor.cast",
        "tensor.collapse_shape",
        "tensor.expand_shape",
        "tensor.extract_slice",
        "tensor.reshape",
        "tensor.splat",
    }
)
"""Operations whose results hold values of their first operand and no others."""
_EACH = frozenset({"hal.tensor.barrier", "iree_linalg_ext.sort", "util.assume.int", "util.optimization_barrier"})
"""Operations each of whose results holds values of the operand with its number."""
_EMPTY = frozenset({"flow.tensor.alloca", "flow.tensor.empty", "tensor.empty"})
_ELEMENT = frozenset({"flow.tensor.load", "tensor.extract"})
_JOINING = frozenset({"tensor.concat", "tensor.from_elements"})
CALLS = frozenset({"flow.dispatch", "util.call"})
LOAD, STORE = "iree_tensor_ext.dispatch.tensor.load", "iree_tensor_ext.dispatch.tensor.store"


@dataclass(frozen=True, eq=False)
class Frame:
    """One call of a function.

    Attributes:
        call: The ``util.call`` or ``flow.dispatch``; None for a function that the user calls.
        caller: The call that the call is part of.
    """

    function: Any
    call: Any = None
    caller: Frame | None = None

    def operand(self, position: int) -> Any:
        """Return the caller's value that an argument of the function is; None where there is none."""
        first, count = _passed(self.call)
        return self.call.operands[first + position] if position < count else None


class IndexReader:
    """Reads the values of one program."""

    def __init__(self, module: Any) -> None:
        self._functions = functions_of(module)
        self._dispatches = dict(_exported_functions(module))
        self._top = [op.operation for op in module.regions[0].blocks[0]]
        self._arguments: dict[Any, Argument] = {}
        self._frames: dict[tuple[Any, Frame, Any], Frame] = {}
        self._known: dict[tuple[Any, Frame], Expression] = {}
        self._reading: set[tuple[Any, Frame]] = set()

    def frames(self, function: Any, arguments: Sequence[tuple[Any, int]]) -> Iterator[Frame]:
        """Yield the call of a public function and all calls inside.

        Args:
            arguments: Those of its arguments that hold the values which a user passes, in order, with the width of
                their elements.
        """
        self._arguments = {value: Argument(position, bits) for position, (value, bits) in enumerate(arguments)}
        waiting = [Frame(function)]
        while waiting:
            frame = waiting.pop()
            yield frame
            waiting += [
                self._inner(op, callee, frame)
                for op in walk(frame.function)
                if op.name in CALLS
                for callee in self.callees(op)
            ]

    def read(self, value: Any, frame: Frame) -> Expression:
        """Return the expression of an integer, or of the elements of a tensor of integers, of one call."""
        value, frame = self._passed_on(value, frame)
        key = (value, frame)
        if key not in self._known:
            if key in self._reading or len(self._reading) >= DEEPEST:
                return Unknown(_bits(value), "a value that depends on itself, or on a long chain of operations,")
            self._reading.add(key)
            try:
                self._known[key] = self._read(value, frame)
            finally:
                self._reading.remove(key)
        return self._known[key]

    def sources(self, value: Any, frame: Frame, *, compared: bool = False) -> Iterator[tuple[Any, Frame]]:
        """Yield the values that a value is computed from, whether they can be read or not.

        What chooses a value is no source: the position at which a tensor is read, and the condition of a selection;
        unless ``compared``, nor is what a comparison takes.
        """
        op = producer(value)
        if op is None:
            yield from self._sources_of_argument(value, frame)
        elif op.name in CALLS:
            for callee in self.callees(op):
                yield from self._returned(op, callee, _number(value), frame)
        elif op.name in _ELEMENT or op.name in SAME or op.name == LOAD:
            yield op.operands[0], frame
        elif op.name == "arith.select":
            yield from ((operand, frame) for operand in list(op.operands)[1:])
        elif op.name.startswith("linalg.") and op.regions:
            yield _yielded(op.regions[0].blocks[0])[_number(value)], frame
        elif compared or not op.name.startswith("arith.cmp"):
            yield from ((operand, frame) for operand in op.operands)
            yield from ((each, frame) for region in op.regions for block in region for each in _yielded(block))

    def argument(self, value: Any, frame: Frame) -> Argument | None:
        """Return the argument of the program that a value is; None for any other value."""
        return self._arguments.get(value) if frame.call is None else None

    def callees(self, op: Any) -> list[Any]:
        """Return the functions that an operation calls, those of dispatches included."""
        if op.name == "util.call":
            callee = self._functions.get(callee_of(op) or "")
            return [] if callee is None or not callee.regions[0].blocks else [callee]
        if op.name != "flow.dispatch":
            return []
        names = [tuple(ir.SymbolRefAttr(entry).value) for entry in op.attributes["entry_points"]]
        return [self._dispatches[name] for name in names if name in self._dispatches]

    def _passed_on(self, value: Any, frame: Frame) -> tuple[Any, Frame]:
        """Return the value that a value is a copy of, whole: out of calls and through ops that change no element."""
        while True:
            op = producer(value)
            if op is not None and op.name in SAME:
                value = op.operands[0]
            elif op is not None and op.name in _EACH and _number(value) < len(op.operands):
                value = op.operands[_number(value)]
            elif op is None and frame.caller is not None and _is_argument(value, frame.function):
                operand = frame.operand(_position(value))
                if operand is None or self._stores(value):
                    return value, frame
                value, frame = operand, frame.caller
            else:
                return value, frame

    def _read(self, value: Any, frame: Frame) -> Expression:
        op = producer(value)
        if op is None:
            return self._of_argument(value, frame)
        if op.name in CALLS:
            returned = [each for f in self.callees(op) for each in self._returned(op, f, _number(value), frame)]
            return self._one_of(returned) if returned else Unknown(_bits(value), op.name)
        if op.name in _EMPTY:
            return NOTHING
        if op.name in _ELEMENT or op.name == LOAD:
            return Element(self.read(op.operands[0], frame))
        if op.name.startswith("util.global.load"):
            return self._of_global(op, value)
        if op.name.startswith("linalg.") and op.regions:
            return self._of_structured(op, _number(value), frame)
        return self._of_operation(op, value, frame)

    def _of_operation(self, op: Any, value: Any, frame: Frame) -> Expression:
        bits, name = _bits(value), op.name
        if name in ("arith.constant", "flow.tensor.constant"):
            return _constant(op.attributes["value"], bits)
        if name == "arith.cmpi":
            first, second = (self.read(operand, frame) for operand in op.operands)
            return Comparison(ir.IntegerAttr(op.attributes["predicate"]).value, first, second, _bits(op.operands[0]))
        if name == "arith.select":
            condition, if_true, if_false = (self.read(operand, frame) for operand in op.operands)
            is_scalar = not isinstance(value.type, ir.ShapedType)
            return Selected(condition, if_true, if_false) if is_scalar else OneOf((if_true, if_false))
        if name in RULES:
            operands = tuple(self.read(operand, frame) for operand in op.operands)
            return Computed(name, operands, bits, _bits(op.operands[0]))
        if name in ("affine.apply", "affine.min", "affine.max"):
            results = affine_results(op, [self.read(operand, frame) for operand in op.operands])
            return _folded(name, results)
        if name == "linalg.index":
            return _loop_index(op.parent.operation, int(ir.IntegerAttr(op.attributes["dim"]).value))
        if name == "tensor.dim":
            return self._dimension(op, frame)
        if name in _JOINING:
            return self._one_of([(operand, frame) for operand in op.operands])
        if name in ("tensor.insert", "tensor.insert_slice"):
            return self._one_of([(op.operands[0], frame), (op.operands[1], frame)])
        if name == "flow.tensor.update":
            return self._one_of([(each, frame) for each in op.operands if isinstance(each.type, ir.ShapedType)])
        if name in ("tensor.pad", "tensor.generate"):
            inside = [(each, frame) for each in _yielded(op.regions[0].blocks[0])]
            return self._one_of([(op.operands[0], frame), *inside] if name == "tensor.pad" else inside)
        if name == "scf.if":
            return self._one_of([(_yielded(region.blocks[0])[_number(value)], frame) for region in op.regions])
        if name == "scf.for":
            body, number = op.regions[0].blocks[0], _number(value)
            return self._carried(body, 1 + number, op.operands[3 + number], number, frame)
        return Unknown(bits, name)

    def _of_argument(self, value: Any, frame: Frame) -> Expression:
        position = _position(value)
        if _is_argument(value, frame.function):
            if (argument := self.argument(value, frame)) is not None:
                return argument
            operand = None if frame.caller is None else frame.operand(position)
            held = [] if operand is None or frame.caller is None else [(operand, frame.caller)]
            return self._one_of([*held, *((stored, frame) for stored in self._stores(value))])
        op = value.owner.owner.operation
        if op.name.startswith("linalg."):
            carried = position >= _inputs(op) and not _is_parallel(op)
            return Parameter(_bits(value)) if carried else Element(self.read(op.operands[position], frame))
        if op.name == "scf.for":
            return self._counter(op, frame) if position == 0 else Parameter(_bits(value))
        return Unknown(_bits(value), op.name)

    def _counter(self, loop: Any, frame: Frame) -> Expression:
        """Return the counter of an ``scf.for``, from its lower to its upper bound."""
        bits = _bits(loop.operands[0])
        low, high = (self.read(operand, frame) for operand in list(loop.operands)[:2])
        last = Computed("arith.subi", (high, Constant((1, 1))), bits, bits)
        return OneOf((low, last))

    def _of_structured(self, op: Any, number: int, frame: Frame) -> Expression:
        body, position = op.regions[0].blocks[0], _inputs(op) + number
        if _is_parallel(op) or position >= len(body.arguments):
            return self.read(_yielded(body)[number], frame)
        return self._carried(body, position, op.operands[position], number, frame)

    def _carried(self, body: Any, position: int, initial: Any, number: int, frame: Frame) -> Expression:
        """Return what a loop carries after any number of steps, given the body's argument and what the body yields."""
        parameter = self.read(body.arguments[position], frame)
        assert isinstance(parameter, Parameter)
        return Carried(parameter, self.read(initial, frame), self.read(_yielded(body)[number], frame))

    def _of_global(self, load: Any, value: Any) -> Expression:
        """Return what a global holds: its initial value, or what an initializer stores; unknown where that changes."""
        name = str(ir.FlatSymbolRefAttr(load.attributes["global"]).value)
        stored = [op for op in self._top if op.name == "util.global" and symbol_of(op) == name]
        if not stored or "is_mutable" in stored[0].attributes:
            return Unknown(_bits(value), "a value that the program keeps")
        if "initial_value" in stored[0].attributes:
            return _constant(stored[0].attributes["initial_value"], _bits(value))
        initializers = [op for op in self._top if op.name == "util.initializer"]
        stores = [(op, f) for f in initializers for op in walk(f) if op.name == "util.global.store"]
        return self._one_of(
            [(op.operands[0], Frame(f)) for op, f in stores if str(op.attributes["global"]) == f"@{name}"]
        )

    def _dimension(self, op: Any, frame: Frame) -> Expression:
        dimension = self.read(op.operands[1], frame)
        if isinstance(dimension, Constant) and dimension.interval[0] == dimension.interval[1]:
            type_, number = op.operands[0].type, dimension.interval[0]
            if not type_.is_dynamic_dim(number):
                return Constant((type_.shape[number],) * 2)
        return Unknown(INDEX_BITS, op.name)

    def _one_of(self, values: list[tuple[Any, Frame]]) -> Expression:
        choices = tuple(self.read(value, frame) for value, frame in values)
        return choices[0] if len(choices) == 1 else OneOf(choices)

    def _returned(self, call: Any, callee: Any, number: int, frame: Frame) -> list[tuple[Any, Frame]]:
        """Return the values that a result of a call can hold, in the called function."""
        inner = self._inner(call, callee, frame)
        if call.name == "util.call":
            returns = [op for op in walk(callee) if op.name == "util.return"]
            return [(op.operands[number], inner) for op in returns]
        argument = callee.regions[0].blocks[0].arguments[_result_position(call, number)]
        return [(argument, inner)]

    def _inner(self, call: Any, callee: Any, frame: Frame) -> Frame:
        """Return the call inside another call; the same one each time, so that its values are read once."""
        return self._frames.setdefault((call, frame, callee), Frame(callee, call, frame))

    def _stores(self, argument: Any) -> list[Any]:
        """Return the values that a dispatch stores into one of its arguments."""
        uses = [use for use in argument.uses if use.owner.operation.name == STORE and use.operand_number == 1]
        return [use.owner.operation.operands[0] for use in uses]

    def _sources_of_argument(self, value: Any, frame: Frame) -> Iterator[tuple[Any, Frame]]:
        position = _position(value)
        if _is_argument(value, frame.function):
            yield from ((stored, frame) for stored in self._stores(value))
            operand = None if frame.caller is None else frame.operand(position)
            if operand is not None and frame.caller is not None:
                yield operand, frame.caller
            return
        op = value.owner.owner.operation
        if op.name.startswith("linalg."):
            yield op.operands[position], frame
        else:
            yield from ((operand, frame) for operand in op.operands)


def _position(argument: Any) -> int:
    return int(ir.BlockArgument(argument).arg_number)


def _number(result: Any) -> int:
    return int(ir.OpResult(result).result_number)


def _is_argument(value: Any, function: Any) -> bool:
    """Say whether a block's argument is one of a function's."""
    return bool(value.owner.owner.operation == function)


def _passed(call: Any) -> tuple[int, int]:
    """Return the position of the first operand that a called function takes, and how many it takes."""
    if call.name != "flow.dispatch":
        return 0, len(call.operands)
    segments = list(ir.DenseI32ArrayAttr(call.attributes["operandSegmentSizes"]))
    return int(segments[0]), int(segments[1])


def _result_position(dispatch: Any, number: int) -> int:
    """Return which argument of a dispatch's function a result is written to: an operand, or one behind the operands."""
    _, count = _passed(dispatch)
    tied = tied_operands(dispatch)
    return tied[number] if tied[number] >= 0 else count + sum(position < 0 for position in tied[:number])


def bits_of(type_: Any) -> int:
    """Return the width of an integer, or of the integers in a tensor; that of an index for anything else."""
    element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
    return int(element.width) if isinstance(element, ir.IntegerType) else INDEX_BITS


def _bits(value: Any) -> int:
    return bits_of(value.type)


def _yielded(block: Any) -> list[Any]:
    """Return the operands of a block's last operation."""
    return list(block.operations[len(block.operations) - 1].operation.operands)


def _inputs(op: Any) -> int:
    """Return how many operands of a structured op are inputs."""
    return len(op.operands) - len(op.results)


def _is_parallel(op: Any) -> bool:
    """Say whether a structured op computes each of its elements in one step."""
    return "iterator_types" in op.attributes and "reduction" not in str(op.attributes["iterator_types"])


def _loop_index(op: Any, loop: int) -> Expression:
    """Return the number of a step of a loop of a structured op."""
    maps = [ir.AffineMapAttr(each).value for each in op.attributes["indexing_maps"]] if _has_maps(op) else []
    for each, operand in zip(maps, op.operands, strict=True):
        for dimension, result in enumerate(each.results):
            reads = isinstance(result, ir.AffineDimExpr) and result.position == loop
            if reads and not operand.type.is_dynamic_dim(dimension):
                return Constant((0, operand.type.shape[dimension] - 1))
    return Unknown(INDEX_BITS, "linalg.index")


def _has_maps(op: Any) -> bool:
    return "indexing_maps" in op.attributes


def _constant(attribute: Any, bits: int) -> Expression:
    """Return the smallest and largest element of a constant; unknown for those whose elements MLIR does not show."""
    if isinstance(attribute, ir.IntegerAttr | ir.BoolAttr):
        return Constant((int(attribute.value),) * 2)
    if isinstance(attribute, ir.DenseIntElementsAttr):
        with suppress(TypeError):  # of an element type that numpy does not have
            elements = np.asarray(attribute)
            return Constant((int(elements.min()), int(elements.max()))) if elements.size else NOTHING
    return Unknown(bits, "a constant that is not in the text")


def _folded(name: str, results: list[Expression]) -> Expression:
    """Return the result of ``affine.apply``, ``affine.min`` or ``affine.max``."""
    rule = {"affine.min": "arith.minsi", "affine.max": "arith.maxsi"}.get(name, "")
    folded, *others = results
    for other in others:
        folded = Computed(rule, (folded, other), INDEX_BITS, INDEX_BITS)
    return folded


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
