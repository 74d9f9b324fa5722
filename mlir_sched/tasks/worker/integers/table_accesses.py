"""The places of a program at the flow phase where an integer is a position, a divisor, a size or a shift's amount."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.tasks.worker.integers.index_reader import LOAD, STORE, bits_of
from mlir_sched.tasks.worker.integers.intervals import EMPTY, Interval

_DYNAMIC = -(2**63)
"""What a static offset or size is where an operand gives it (``ShapedType::kDynamic``)."""
_DIVISIONS = frozenset(
    f"arith.{name}" for name in ("divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui")
)
_SHIFTS = frozenset({"arith.shli", "arith.shrsi", "arith.shrui"})
_SLICED = {"tensor.extract_slice": 0, "tensor.insert_slice": 1, LOAD: 0, STORE: 1}
"""Operations on a part of a tensor, with the position of the tensor among their operands."""
_ELEMENTS = {"tensor.extract": 0, "tensor.insert": 1, "flow.tensor.load": 0, "flow.tensor.store": 1}
"""Operations on one element of a tensor, with the position of the tensor among their operands."""
_CONTROL = {"scf.for": slice(0, 3), "scf.condition": slice(0, 1), "cf.cond_br": slice(0, 1), "cf.switch": slice(0, 1)}
"""Operations that decide how often something runs, with the operands that say so."""
HOW_OFTEN = "how often a loop runs"
"""What an integer is that the end of a loop depends on."""
_FOLLOWED = ("affine.", "arith.", "cf.", "flow.", "func.", "hal.", "iree_tensor_ext.", "linalg.", "math.", "scf.")
_FOLLOWED_TOO = ("tensor.", "util.", "iree_linalg_ext.index", "iree_linalg_ext.yield")
_VALUES_ONLY = frozenset(f"iree_linalg_ext.{name}" for name in ("arg_compare", "scan", "sort", "topk"))
_PLACELESS = frozenset({"tensor.from_elements", "tensor.splat", "flow.tensor.splat", "tensor.yield", "tensor.dim"})
_DIMENSIONS = re.compile(r"tensor<([\dx?]*)x")


@dataclass(frozen=True)
class Access:
    """A place where integers must lie between limits.

    Attributes:
        value: The integer, or a tensor of integers; with ``behind``, another one that is added.
        allowed: What it may be; empty where no limit is known that makes a value safe.
        what: What the integer is there, for a message.
        behind: A size that lies behind a position; None for none.
    """

    value: Any
    allowed: Interval
    what: str
    behind: Any = None


def accesses_of(op: Any) -> Iterator[Access]:
    """Yield the limits that an operation sets for its operands."""
    name = op.name
    if name in _DIVISIONS:
        yield Access(op.operands[1], (1, 2**63), "a divisor")
    elif name in _SHIFTS:
        yield Access(op.operands[1], (0, bits_of(op.operands[0].type) - 1), "an amount of a shift")
    elif name in _ELEMENTS:
        yield from _element(op, op.operands[_ELEMENTS[name]].type)
    elif name in _SLICED:
        yield from _slice(op, _shape(op.operands[_SLICED[name]].type))
    elif name in ("flow.tensor.slice", "flow.tensor.update"):
        yield from _copied_part(op)
    elif name in ("iree_linalg_ext.gather", "iree_linalg_ext.scatter"):
        yield from _rows(op)
    elif name in _CONTROL:
        yield from (Access(value, EMPTY, HOW_OFTEN) for value in list(op.operands)[_CONTROL[name]])
    elif name not in _PLACELESS and name not in _VALUES_ONLY:
        yield from _unfamiliar(op)


def _element(op: Any, indexed: Any) -> Iterator[Access]:
    indices = list(op.operands)[len(op.operands) - indexed.rank :] if indexed.rank else []
    for dimension, index in enumerate(indices):
        yield _position(index, _size(indexed, dimension), indexed)


def _slice(op: Any, shape: list[int]) -> Iterator[Access]:
    """Yield the limits of the offsets, sizes and strides of a slice."""
    offsets, sizes, strides = _mixed(op)
    for extent, offset, size, stride in zip(shape, offsets, sizes, strides, strict=True):
        what = f"a position in a tensor of {extent}"
        if not isinstance(stride, int):
            yield Access(stride, EMPTY, "a stride")
        if not isinstance(size, int):
            yield Access(size, (0, extent), "a size")
        if not isinstance(offset, int):
            if isinstance(size, int):
                reach = (size - 1) * stride if isinstance(stride, int) else extent
                yield Access(offset, (0, extent - 1 - reach), what)
            else:
                yield Access(offset, (0, extent), what, behind=size)


def _mixed(op: Any) -> list[list[Any]]:
    """Return the offsets, sizes and strides of a slice: a number where it is static, otherwise the operand."""
    segments = [int(size) for size in ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])]
    operands, start, mixed = list(op.operands), sum(segments[:-3]), []
    for name, count in zip(("static_offsets", "static_sizes", "static_strides"), segments[-3:], strict=True):
        dynamic = iter(operands[start : start + count])
        numbers = [int(number) for number in ir.DenseI64ArrayAttr(op.attributes[name])]
        mixed.append([next(dynamic) if number == _DYNAMIC else number for number in numbers])
        start += count
    return mixed


def _copied_part(op: Any) -> Iterator[Access]:
    """Yield the limits of the first positions of a slice of a tensor, or of an update of one."""
    segments = [int(size) for size in ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])]
    operands, start, tensor = list(op.operands), segments[0] + segments[1], op.operands[0].type
    offsets = operands[start : start + segments[2]]
    part = op.results[0].type if op.name == "flow.tensor.slice" else operands[start + segments[2]].type
    for dimension, offset in enumerate(offsets):
        extent, length = _size(tensor, dimension), _size(part, dimension)
        yield _position(offset, extent - length + 1 if extent and length else 0, tensor)


def _rows(op: Any) -> Iterator[Access]:
    """Yield the limit of the rows that a gather reads or a scatter writes, for the smallest of the dimensions."""
    table = op.operands[0].type if op.name.endswith("gather") else op.results[0].type
    part = op.results[0].type if op.name.endswith("gather") else op.operands[0].type
    dimensions = [int(each) for each in ir.DenseI64ArrayAttr(op.attributes["dimension_map"])]
    indices = op.operands[1]
    rank = indices.type.rank
    batch = rank - 1 if len(dimensions) > 1 or (rank and _size(indices.type, rank - 1) == 1) else rank
    whole = table.rank - (part.rank - batch)
    extents = [_size(part, batch + each - whole) if each >= whole else 1 for each in dimensions]
    sizes = [_size(table, each) for each in dimensions]
    known = all(sizes) and all(extents)
    room = min((size - extent + 1 for size, extent in zip(sizes, extents, strict=True)), default=0) if known else 0
    yield _position(indices, room, table)


def _unfamiliar(op: Any) -> Iterator[Access]:
    """Yield the integers that an operation may use as positions or sizes in a way that is not known."""
    followed = op.name.startswith(_FOLLOWED) or op.name.startswith(_FOLLOWED_TOO)
    sizes = op.name.startswith(("tensor.", "flow.tensor."))
    for operand in op.operands:
        is_size = sizes and isinstance(operand.type, ir.IndexType)
        if is_size or (not followed and holds_integers(operand.type)):
            yield Access(operand, EMPTY, f"an operand of {op.name}")


def _position(index: Any, size: int, tensor: Any) -> Access:
    return Access(index, (0, size - 1) if size else EMPTY, f"a position in {tensor}")


def _size(tensor: Any, dimension: int) -> int:
    """Return the static size of a dimension, or 0."""
    return 0 if tensor.is_dynamic_dim(dimension) else int(tensor.shape[dimension])


def _shape(type_: Any) -> list[int]:
    """Return the static sizes of a tensor or of a tensor of a dispatch; 0 for one that is dynamic."""
    if isinstance(type_, ir.RankedTensorType):
        return [_size(type_, dimension) for dimension in range(type_.rank)]
    found = _DIMENSIONS.search(str(type_))
    return [0 if size == "?" else int(size) for size in found.group(1).split("x")] if found else []


def holds_integers(type_: Any) -> bool:
    """Say whether a value of a type is an integer wider than ``i1``, or holds such integers."""
    element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
    return isinstance(element, ir.IndexType) or (isinstance(element, ir.IntegerType) and element.width > 1)
