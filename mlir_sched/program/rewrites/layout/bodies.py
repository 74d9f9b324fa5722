"""Bodies of ``linalg.generic``: how elements are made, and how a script says that an op has such a body.

A script compares the op that makes an element, and all that this is computed from, down to the leaves: arguments of
the body, indices of loops, and tensors that the body reads elements of. Constants may lie outside of the body.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import captured, named_attributes, producer
from mlir_sched.payload import PAD
from mlir_sched.program.rewrites.linalg_ops import GENERIC, copied, dims_map, is_static, loops_of, maps_of
from mlir_sched.program.rewrites.replacement import (
    MEMOIZED,
    attributes_of,
    match_dag,
    only_op,
    ops_named,
    producer_of,
    split,
)
from mlir_sched.program.rewrites.site_rewrite import OpSite

INDEX, EXTRACT = "linalg.index", "tensor.extract"
_SCALAR = ("arith.", "math.", INDEX, EXTRACT)
_DERIVED = ("operandSegmentSizes", MEMOIZED)
"""Attributes that follow from others."""
WITH_BODY = (GENERIC, PAD)
"""Ops whose bodies do not follow from their names."""


@dataclass(frozen=True)
class Body:
    """The body of an op.

    Attributes:
        op: A ``linalg.generic``, or another op with a body.
    """

    op: Any

    @property
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

    @property
    def reads(self) -> list[Any]:
        """The ops that read elements of tensors."""
        return [op for op in self.ops if op.name == EXTRACT]

    @property
    def tensors(self) -> list[Any]:
        """The tensors that these read, each once."""
        return list(dict.fromkeys(read.operands[0] for read in self.reads))

    @property
    def iterators(self) -> list[str]:
        """The kinds of the loops."""
        kinds = map(str, self.op.attributes["iterator_types"])
        return ["reduction" if "reduction" in kind else "parallel" for kind in kinds]

    @cached_property
    def places(self) -> list[tuple[int | None, ...]]:
        """The loops that the dims of every operand are read at; None for zeros."""
        return list(map(loops_of, maps_of(self.op)))

    @property
    def is_plain(self) -> bool:
        """Whether sizes are known, operands read at loops and zeros, and elements computed by scalar ops alone."""
        static = all(map(is_static, (*self.op.operands, *self.tensors)))
        plain = [dims_map(len(self.iterators), each) for each in self.places] == maps_of(self.op)
        return static and plain and all(map(self._is_scalar, values_of(*self.elements)))

    def handles_on_reads(self, handle: Any) -> list[Any]:
        """Emit handles on the ops that read elements, from one on the op."""
        return list(split(ops_named(handle, EXTRACT), len(self.reads))) if self.reads else []

    def _is_scalar(self, value: Any) -> bool:
        """Say whether a value is one that the body gets, reads from, or computes by a scalar op, or a constant."""
        op = producer(value)
        if op is None or op not in self.ops:
            return value in (*self.arguments, *self.tensors) or (op is not None and op.name == "arith.constant")
        return op.name.startswith(_SCALAR) and len(op.results) == 1


def made_again(value: Any, made: dict[Any, Any], other: Callable[[Any], Any | None]) -> Any:
    """Return a value of a body in another body, where some are made.

    Args:
        other: Returns what stands in place of the op's result; None for a copy of the op.
    """
    if value not in made:
        op = producer(value)
        if (result := other(op)) is None:
            result = copied(op, [made_again(each, made, other) for each in op.operands]).results[0]
        made[value] = result
    return made[value]


def form_of(op: Any) -> tuple[Hashable, ...]:
    """Return what :func:`match_form` compares of an op, and which values its body uses where."""
    outside, body = captured(op), Body(op)
    inside = [*body.arguments, *(made for one in body.ops for made in one.results)] if op.name in WITH_BODY else []
    constants = (attributes_of(op) for op in map(producer, outside) if op is not None and op.name == "arith.constant")
    types = (value.type for value in (*inside, *outside))
    return *OpSite(op).form, *types, *map(outside.index, outside), *constants


def match_form(handle: Any, op: Any) -> None:
    """Emit the comparison of an op's attributes, and of how its elements are computed, whatever the sizes are."""
    only_op(handle, op.name, {each.name: each.attr for each in named_attributes(op) if each.name not in _DERIVED})
    if op.name not in WITH_BODY:
        return
    *_, end = Body(op).ops
    found = only_op(handle, end.name)
    for number, element in enumerate(end.operands):
        if not is_leaf(element):
            match_dag(producer(element), list(filter(is_leaf, values_of(element))), producer_of(found, number))


def values_of(*values: Any) -> list[Any]:
    """Return what values of a body are computed from, each after its operands, and the values."""
    found = dict[Any, None]()
    for value in values:
        _append(value, found)
    return list(found)


def is_leaf(value: Any) -> bool:
    """Say whether a comparison takes a value of a body as given."""
    op = producer(value)
    return op is None or op.name == INDEX or isinstance(value.type, ir.RankedTensorType)


def _append(value: Any, found: dict[Any, None]) -> None:
    if value not in found:
        for operand in () if is_leaf(value) else producer(value).operands:
            _append(operand, found)
        found[value] = None
