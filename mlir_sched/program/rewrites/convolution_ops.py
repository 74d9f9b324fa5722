"""Queries of linalg's named convolutions, for the rewrites."""

from __future__ import annotations

from typing import Any

from iree.compiler import ir

CHANNELS_LAST = ("linalg.conv_1d_nwc_wcf", "linalg.conv_2d_nhwc_hwcf", "linalg.conv_3d_ndhwc_dhwcf")
"""The convolutions over images (batch, pixels, channels) and filters (taps, channels, filters), by rank - 1."""


def is_static_f32(value: Any) -> bool:
    """Say whether a value is a tensor of f32 whose sizes are known."""
    kind = value.type
    return isinstance(kind, ir.RankedTensorType) and kind.has_static_shape and isinstance(kind.element_type, ir.F32Type)


def strides_of(op: Any, rank: int) -> list[int]:
    """Return the pixels from one result to the next, per spatial dimension."""
    return _numbers(op, "strides", rank)


def dilations_of(op: Any, rank: int) -> list[int]:
    """Return the pixels from one tap to the next, per spatial dimension."""
    return _numbers(op, "dilations", rank)


def _numbers(op: Any, name: str, rank: int) -> list[int]:
    if name not in op.attributes:
        return [1] * rank
    found = [int(value) for value in ir.DenseIntElementsAttr(op.attributes[name])]
    return found * rank if len(found) == 1 else found
