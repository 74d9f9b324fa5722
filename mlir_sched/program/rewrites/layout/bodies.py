"""Bodies of ``linalg.generic``: how elements are made, and how a script says that an op has such a body.

A matcher compares the op that makes an element, and all that this is computed from, down to the leaves: arguments of
the body, indices of loops, and tensors that the body reads elements of. Constants may lie outside of the body.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.linalg_ops import GENERIC, maps_of
from mlir_sched.program.rewrites.replacement import (
    attributes_of,
    match_dag,
    match_type,
    only_op,
    operand_of,
    ops_named,
    producer_of,
)

INDEX, EXTRACT = "linalg.index", "tensor.extract"
_SCALAR = ("arith.", "math.", INDEX, EXTRACT)
_FORM = ("indexing_maps", "iterator_types")


@dataclass(frozen=True)
class Body:
    """The body of an op.

    Attributes:
        op: A ``linalg.generic``.
    """

    op: Any

    @cached_property
    def arguments(self) -> list[Any]:
        """The elements of operands that the body gets."""
        return list(self.op.regions[0].blocks[0].arguments)

    @cached_property
    def ops(self) -> list[Any]:
        """The ops of the body."""
        return [one.operation for one in self.op.regions[0].blocks[0]]

    @property
    def elements(self) -> list[Any]:
        """The values that are elements of the results."""
        return list(self.ops[-1].operands)

    @cached_property
    def values(self) -> list[Any]:
        """The values that elements are computed from, each after its operands, and the elements."""
        return values_of(*self.elements)

    @property
    def reads(self) -> list[Any]:
        """The ops that read elements of tensors."""
        return [op for op in self.ops if op.name == EXTRACT]

    @property
    def tensors(self) -> list[Any]:
        """The tensors that these read, each once."""
        return list(dict.fromkeys(read.operands[0] for read in self.reads))

    @property
    def inputs(self) -> list[Any]:
        """The operands, then those tensors."""
        return [*self.op.operands, *self.tensors]

    @property
    def iterators(self) -> list[str]:
        """The kinds of the loops."""
        return [
            "reduction" if "reduction" in str(kind) else "parallel" for kind in self.op.attributes["iterator_types"]
        ]

    @property
    def is_plain(self) -> bool:
        """Whether sizes are known, operands read at loops and zeros, and elements computed by scalar ops alone."""
        kinds = [value.type for value in (*self.op.operands, *self.tensors)]
        static = all(isinstance(kind, ir.RankedTensorType) and kind.has_static_shape for kind in kinds)
        plain = all(is_loop(expr) or is_zero(expr) for each in maps_of(self.op) for expr in each.results)
        return static and plain and all(map(self._is_scalar, self.values))

    @property
    def kind(self) -> tuple[Any, ...]:
        """Form and types of the op, and how elements are computed."""
        numbers = {value: number for number, value in enumerate(dict.fromkeys([*self.arguments, *self.values]))}
        steps = [(op.name, attributes_of(op), *map(numbers.get, op.operands)) for op in _makers(self.values)]
        types = (str(value.type) for value in (*self.op.operands, *numbers))
        return *attributes_of(self.op), *types, *steps, *map(numbers.get, self.elements)

    def match(self, root: Any) -> None:
        """Emit the comparison of form and types of an op, and of how its elements are computed."""
        only_op(root, GENERIC, {name: self.op.attributes[name] for name in _FORM})
        for number, operand in enumerate(self.op.operands):
            match_type(operand_of(root, number), operand.type)
        end = only_op(root, "linalg.yield")
        for number, element in enumerate(self.elements):
            if not is_leaf(element):
                match_dag(producer(element), list(filter(is_leaf, values_of(element))), producer_of(end, number))

    def handles(self, handle: Any) -> list[Any]:
        """Emit handles on the inputs, from one on an op with such a body."""
        operands, reads = [operand_of(handle, number) for number in range(len(self.op.operands))], self.reads
        if not reads:
            return operands
        found = transform.SplitHandleOp([transform.AnyOpType.get()] * len(reads), ops_named(handle, EXTRACT)).results
        first = {read.operands[0]: number for number, read in reversed(list(enumerate(reads)))}
        return [*operands, *(operand_of(found[first[each]], 0) for each in self.tensors)]

    def _is_scalar(self, value: Any) -> bool:
        """Say whether a value is one that the body gets, reads from, or computes by a scalar op, or a constant."""
        op = producer(value)
        if op is None or op not in self.ops:
            return value in (*self.arguments, *self.tensors) or (op is not None and op.name == "arith.constant")
        return op.name.startswith(_SCALAR) and len(op.results) == 1


def values_of(*values: Any) -> list[Any]:
    """Return what values of a body are computed from, each after its operands, and the values."""
    found = dict[Any, None]()
    for value in values:
        _append(value, found)
    return list(found)


def is_leaf(value: Any) -> bool:
    """Say whether a matcher takes a value of a body as given."""
    op = producer(value)
    return op is None or op.name == INDEX or isinstance(value.type, ir.RankedTensorType)


def is_loop(expr: Any) -> bool:
    """Say whether an expression of an indexing map is a loop."""
    return isinstance(expr, ir.AffineDimExpr)


def is_zero(expr: Any) -> bool:
    """Say whether an expression of an indexing map is zero."""
    return isinstance(expr, ir.AffineConstantExpr) and expr.value == 0


def _append(value: Any, found: dict[Any, None]) -> None:
    if value not in found:
        for operand in () if is_leaf(value) else producer(value).operands:
            _append(operand, found)
        found[value] = None


def _makers(values: list[Any]) -> Iterator[Any]:
    """Yield the ops that make values of a body."""
    made = (producer(value) for value in values if not isinstance(value.type, ir.RankedTensorType))
    return (op for op in made if op is not None)
