"""Queries of ``tensor.pad``, for the rewrites, and its construction in the current context."""

from collections.abc import Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import tensor

from mlir_sched.compiler.operations import producer
from mlir_sched.payload import PAD
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.linalg_ops import copied, numbers_of, zero
from mlir_sched.program.rewrites.replacement import match_dag, only_op, producer_of

_SIDES = ("static_low", "static_high")


def pads_with_zeros(op: Any) -> bool:
    """Say whether an op surrounds a static tensor of f32 with a known number of zeros."""
    if op.name != PAD or not is_static_f32(op.operands[0]) or not number_around(op):
        return False
    return bool(ir.FloatAttr(padding_of(op).attributes["value"]).value == 0.0)


def number_around(pad: Any) -> str:
    """Return the constant around a static tensor, as text; empty for other padding."""
    padding, kind = padding_of(pad), pad.operands[0].type
    if len(pad.operands) != 1 or not kind.has_static_shape or padding is None or padding.name != "arith.constant":
        return ""
    return str(padding.attributes["value"]) if min(map(min, filter(None, sides_of(pad))), default=0) >= 0 else ""


def sides_of(pad: Any) -> list[list[int]]:
    """Return the padding in front of every dim, and the padding behind every dim."""
    return [numbers_of(pad, name) for name in _SIDES]


def widths_of(pad: Any) -> dict[str, Any]:
    """Return the attributes with the widths of the padding."""
    return {name: pad.attributes[name] for name in _SIDES}


def only_pad(handle: Any, pad: Any) -> Any:
    """Emit a handle on the ``tensor.pad`` of a handle; fail unless it has the widths and the constant of ``pad``."""
    found = only_op(handle, PAD, widths_of(pad))
    yielded = only_op(found, "tensor.yield")
    match_dag(padding_of(pad), [], producer_of(yielded, 0))
    return found


def padded(source: Any, low: Sequence[int], high: Sequence[int]) -> Any:
    """Return a tensor with zeros around it."""
    return _surrounded(source, low, high, zero(source.type.element_type))


def padded_alike(source: Any, pad: Any) -> Any:
    """Return a tensor padded as another one is, with the same constant."""
    low, high = sides_of(pad)
    return surrounded_alike(source, low, high, pad)


def surrounded_alike(source: Any, low: Sequence[int], high: Sequence[int], pad: Any) -> Any:
    """Return a tensor with the constant around it that a padded one has."""
    return _surrounded(source, low, high, copied(padding_of(pad), []).result)


def _surrounded(source: Any, low: Sequence[int], high: Sequence[int], number: Any) -> Any:
    """Return a tensor with copies of a number around it."""
    kind = source.type
    shape = [sum(sizes) for sizes in zip(low, kind.shape, high, strict=True)]
    result = tensor.PadOp(ir.RankedTensorType.get(shape, kind.element_type), source, [], [], low, high)
    block = result.regions[0].blocks.append(*[ir.IndexType.get()] * len(shape))
    with ir.InsertionPoint(block):
        tensor.yield_(number)
    return result.result


def padding_of(pad: Any) -> Any:
    """Return the op that makes the padding value; None when no op makes it."""
    return producer(list(pad.regions[0].blocks[0])[-1].operation.operands[0])
