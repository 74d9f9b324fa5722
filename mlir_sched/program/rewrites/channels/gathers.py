"""Gathers along channels: ops whose bodies read a tensor, along one dimension, at places known before any call.

PyTorch's exporter writes ``index_select``, and indexing by a tensor, that way: elements of the tensor of indices, of
which those below zero count from the end, and indices of loops. A permutation or a selection of channels is such an op
where the indices are constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mlir_sched.compiler.operations import producer, walk
from mlir_sched.program.rewrites.channels.order import Numbers
from mlir_sched.program.rewrites.channels.places import Known, constant_numbers, has_integers, is_stated
from mlir_sched.program.rewrites.linalg_ops import GENERIC, is_elementwise
from mlir_sched.program.rewrites.placed.body import EXTRACT, INDEX, Body
from mlir_sched.program.rewrites.placed.links import Link

_PURE = ("arith.", INDEX, EXTRACT, "linalg.yield")


class Gather(NamedTuple):
    """A gather along one dimension.

    Attributes:
        source: The tensor that is read.
        dim: The dimension.
        places: Where the elements of the result are read along the dimension.
    """

    source: Any
    dim: int
    places: Numbers


def gather(op: Any) -> Gather | None:
    """Return an op as a gather along one dimension at known places inside of a tensor; None for any other op."""
    if op.name != GENERIC or not is_elementwise(op):
        return None
    body = Body(op)
    read = producer(body.elements[0])
    if body.reads != [read] or not body.is_plain or not all(one.name.startswith(_PURE) for one in walk(op)):
        return None
    if not all(has_integers(operand) for _, operand in _indices(op)):
        return None
    (source, *at), shape = read.operands, op.result.type.shape
    known = [Known(body, dim, size).of(place) for dim, (place, size) in enumerate(zip(at, shape, strict=False))]
    places = [np.broadcast_to(each, size) for each, size in zip(known, shape, strict=False) if each is not None]
    if not len(places) == len(at) == len(shape):
        return None
    moved = [dim for dim, own in enumerate(source.type.shape) if [*places[dim]] != [*range(own)]]
    if len(moved) != 1 or not all(0 <= place < source.type.shape[moved[0]] for place in places[moved[0]]):
        return None
    return Gather(source, moved[0], places[moved[0]])


def stated_indices(op: Any) -> list[Link]:
    """Return the indices of a gather that stand in the text of the program, as it reads them."""
    return [Link(op, place) for place, operand in _indices(op) if is_stated(operand)]


def unseen_indices(op: Any) -> Iterator[tuple[int, Numbers]]:
    """Yield the places, among operands, of indices that do not (:func:`stated_indices`), and their elements."""
    for place, operand in _indices(op):
        numbers = None if is_stated(operand) else constant_numbers(operand)
        if numbers is not None:
            yield place, numbers


def _indices(op: Any) -> Iterator[tuple[int, Any]]:
    """Yield the operands of a gather, but where the result is put, with their places; none of another op."""
    is_gather = op.name == GENERIC and Body(op).reads
    return ((place, op.operands[place]) for place in range(len(op.operands) - 1 if is_gather else 0))
