"""Bodies of ``linalg.generic``: how an element is made, and how ops with such a body are found again.

A matcher starts at the end of a body. It compares the op that makes the element, and all that this is computed from,
down to the leaves: arguments of the body, indices of loops, and tensors that the body reads elements of. Constants may
lie outside of the body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.replacement import (
    attributes_of,
    match_dag,
    match_type,
    operand_of,
    ops_named,
    producer_of,
)

GENERIC, INDEX = "linalg.generic", "linalg.index"
_FORM = ("indexing_maps", "iterator_types")


@dataclass(frozen=True)
class Body:
    """The body of an op.

    Attributes:
        op: A ``linalg.generic`` of one result.
    """

    op: Any

    @property
    def result(self) -> Any:
        """The op's result."""
        return self.op.result

    @property
    def block(self) -> Any:
        """The op's body."""
        return self.op.regions[0].blocks[0]

    @property
    def element(self) -> Any:
        """The value that is an element of the result."""
        return list(self.block)[-1].operation.operands[0]

    @cached_property
    def values(self) -> list[Any]:
        """The values that an element of the result is computed from, each after its operands, then the element."""
        return list(values_of(self.element, set()))

    @property
    def leaves(self) -> list[Any]:
        """Those values that a matcher takes as given."""
        return list(filter(is_leaf, self.values))

    @property
    def made(self) -> list[Any]:
        """The ops that compute an element, in order."""
        return [producer(value) for value in self.values if not is_leaf(value)]

    @property
    def tensors(self) -> list[Any]:
        """The tensors that the body reads elements of."""
        return [leaf for leaf in self.leaves if isinstance(leaf.type, ir.RankedTensorType)]

    @property
    def matched(self) -> tuple[Any, ...]:
        """What a matcher compares: form and types of the op, and how an element is computed from values of types."""
        numbers = {value: number for number, value in enumerate(self.values)}
        steps = [(op.name, attributes_of(op), *map(numbers.get, op.operands)) for op in self.made]
        return *self.form, *(str(value.type) for value in self.values), *steps

    @property
    def kind(self) -> tuple[Any, ...]:
        """What is matched, and which values the leaves are."""
        given = {value: number for number, value in enumerate([*self.block.arguments, *self.tensors])}
        leaves = (given[leaf] if leaf in given else attributes_of(producer(leaf)) for leaf in self.leaves)
        return *self.matched, *leaves

    @property
    def form(self) -> tuple[Any, ...]:
        """What a matcher compares of the op itself."""
        return attributes_of(self.op), *(str(value.type) for value in (self.result, *self.op.operands))

    def covers(self, other: Body) -> bool:
        """Say whether a matcher of this body may match another one of this form: a leaf stands for all of its type."""
        return _covers(self.element, other.element)

    def match(self, root: Any) -> None:
        """Emit the comparison of what a body ends with, and of the types of the op's operands."""
        transform.MatchOperationNameOp(root, ["linalg.yield"])
        last = producer_of(root, 0)
        match_dag(producer(self.element), self.leaves, last)
        parent = transform.GetParentOp(transform.AnyOpType.get(), root, op_name=GENERIC).result
        for place, operand in enumerate(self.op.operands):
            match_type(operand_of(parent, place), operand.type)

    def find(self, found: Any) -> Any:
        """Emit a handle on the ops of this form, from one on the ends of bodies that were matched."""
        form = {name: self.op.attributes[name] for name in _FORM}
        return parents(found, GENERIC, form, self.result.type)


def _covers(value: Any, other: Any) -> bool:
    if value.type != other.type or is_leaf(value) or is_leaf(other):
        return bool(value.type == other.type and is_leaf(value))
    op, its = producer(value), producer(other)
    same = op.name == its.name and attributes_of(op) == attributes_of(its) and len(op.operands) == len(its.operands)
    return same and all(_covers(*pair) for pair in zip(op.operands, its.operands, strict=True))


def parents(found: Any, name: str, attributes: Mapping[str, Any], result: ir.Type) -> Any:
    """Emit a handle on the ops around others that have a name, attributes and a type of the result."""
    any_op = transform.AnyOpType.get()
    each = transform.ForeachOp([any_op], [found])
    with ir.InsertionPoint(each.body):
        parent = transform.GetParentOp(any_op, each.bodyTargets[0], op_name=name).result
        transform.YieldOp([ops_named(parent, name, attributes, result)])
    return each.results[0]


def values_of(value: Any, seen: set[Any]) -> Iterator[Any]:
    """Yield the values that a value is computed from and were not seen, each after its operands, then the value."""
    if value in seen:
        return
    seen.add(value)
    for operand in () if is_leaf(value) else producer(value).operands:
        yield from values_of(operand, seen)
    yield value


def is_leaf(value: Any) -> bool:
    """Say whether a matcher takes a value of a body as given."""
    op = producer(value)
    return op is None or op.name == INDEX or isinstance(value.type, ir.RankedTensorType)
