"""Integers that are known before any call: constants, and what bodies compute of them and of the index of one loop."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from iree.compiler import ir

from mlir_sched.compiler.operations import constant_of, producer
from mlir_sched.program.rewrites.channels.order import Numbers
from mlir_sched.program.rewrites.constant_values import scalar_constant
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, EXPAND, GENERIC, dim_of, is_elementwise
from mlir_sched.program.rewrites.placed.body import INDEX, Body

_BLOB = re.compile(r': "0x[0-9A-Fa-f]{8}([0-9A-Fa-f]*)"')
"""The bytes of a resource, behind four that say how they are aligned."""
_COMPARED = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
"""By the predicate of ``arith.cmpi``; what compares unsigned integers is not known."""
_COMPUTED: Mapping[str, Callable[..., Any]] = {
    "arith.addi": np.add,
    "arith.extsi": np.positive,
    "arith.index_cast": np.positive,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.muli": np.multiply,
    "arith.select": np.where,
    "arith.subi": np.subtract,
    "arith.trunci": np.positive,
}
"""By name of op."""
_WIDTHS = (8, 16, 32, 64)
"""Bits of the integers that numpy has, too."""


@dataclass(frozen=True)
class Known:
    """Integers of a body, along one of its loops.

    Attributes:
        body: The body.
        loop: The loop.
        size: How many iterations it has.
    """

    body: Body
    loop: int
    size: int

    def of(self, value: Any) -> Numbers | None:
        """Return a value for every iteration, or one for all; None where it is not known, or other loops change it."""
        op = producer(value)
        if op is None:
            return self._of_argument(value)
        if op.name == INDEX:
            return np.arange(self.size) if dim_of(op) == self.loop else None
        if op.name == "arith.constant":
            number = scalar_constant(value) if isinstance(value.type, (ir.IntegerType, ir.IndexType)) else None
            return None if number is None else _held(np.array(int(number)), value.type)
        compute = _computed(op)
        operands = [] if compute is None else [self.of(each) for each in op.operands]
        known = [each for each in operands if each is not None and (each.dtype != bool or op.name == "arith.select")]
        return None if compute is None or len(known) < len(op.operands) else _held(compute(*known), value.type)

    def _of_argument(self, argument: Any) -> Numbers | None:
        """Return the elements of an operand that the loop alone walks."""
        if argument not in self.body.arguments:
            return None
        place = self.body.arguments.index(argument)
        numbers = constant_numbers(self.body.op.operands[place])
        if numbers is None:
            return None
        walked = [loop for loop, size in zip(self.body.places[place], numbers.shape, strict=True) if size > 1]
        return numbers.ravel() if {*walked} <= {self.loop} else None


def constant_numbers(tensor: Any) -> Numbers | None:
    """Return the elements of a tensor of integers that is a constant, or computed of constants along one dimension."""
    op = producer(tensor)
    if op is None:
        return None
    if op.name in (COLLAPSE, EXPAND) and len(op.operands) == 1:
        source = constant_numbers(op.operands[0])
        return None if source is None else source.reshape(tensor.type.shape)
    if op.name == GENERIC:
        return _along_one_dimension(op)
    if op.name != "arith.constant" or not has_integers(tensor):
        return None
    elements = [*op.attributes["value"]] if is_stated(tensor) else _resource(op)
    return None if elements is None else np.array(elements, dtype=np.int64).reshape(tensor.type.shape)


def has_integers(tensor: Any) -> bool:
    """Say whether the elements of a tensor are integers of a type that numpy has, too."""
    element = tensor.type.element_type
    return isinstance(element, ir.IntegerType) and element.width in _WIDTHS


def is_stated(tensor: Any) -> bool:
    """Say whether a tensor is a constant whose elements are integers in the text of the program."""
    return isinstance(constant_of(tensor), ir.DenseIntElementsAttr)


def _resource(constant: Any) -> Numbers | None:
    """Return the elements of a constant that stand behind the text, which MLIR shows in that of a module alone."""
    module = ir.Module.create(ir.Location.unknown(constant.context))
    constant.clone(ir.InsertionPoint(module.body))
    found = _BLOB.search(str(module))
    width = constant.result.type.element_type.width // 8
    return np.frombuffer(bytes.fromhex(found[1]), dtype=f"<i{width}") if found else None


def _along_one_dimension(op: Any) -> Numbers | None:
    """Return the elements of the only result of an op that makes each of them alone."""
    body, shape = Body(op), op.results[0].type.shape
    large = [dim for dim, size in enumerate(shape) if size > 1]
    if not shape or len(large) > 1 or not is_elementwise(op) or not body.is_plain:
        return None
    (loop,) = large or [0]
    known = Known(body, loop, shape[loop]).of(body.elements[0])
    return None if known is None else np.broadcast_to(known, shape[loop]).reshape(shape)


def _held(numbers: Numbers, kind: Any) -> Numbers | None:
    """Return what a type of integers holds of numbers, without the bits that it lacks; None where that is not known."""
    if numbers.dtype == bool or isinstance(kind, ir.IndexType):
        return numbers
    return numbers.astype(f"i{kind.width // 8}").astype(np.int64) if kind.width in _WIDTHS else None


def _computed(op: Any) -> Callable[..., Any] | None:
    """Return what an op computes of integers; None where that is not known."""
    if op.name != "arith.cmpi":
        return _COMPUTED.get(op.name)
    predicate = int(ir.IntegerAttr(op.attributes["predicate"]).value)
    return _COMPARED[predicate] if predicate < len(_COMPARED) else None
