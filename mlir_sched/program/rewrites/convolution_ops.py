"""Queries of linalg's named convolutions, for the rewrites."""

from typing import Any

from iree.compiler import ir

from mlir_sched.program.rewrites.linalg_ops import is_static

CHANNELS_LAST = ("linalg.conv_1d_nwc_wcf", "linalg.conv_2d_nhwc_hwcf", "linalg.conv_3d_ndhwc_dhwcf")
"""The convolutions over images (batch, pixels, channels) and filters (taps, channels, filters), by rank - 1."""

PLANE_FIRST, PLANE_LAST = "linalg.conv_2d_nchw_fchw", CHANNELS_LAST[1]
"""The two-dimensional convolutions with channels first, and with channels last."""

TO_LAST = (0, 2, 3, 1)
"""Order of the dims of a two-dimensional image, from channels first to channels last."""
FILTER_TO_LAST = (2, 3, 1, 0)
"""Order of the dims of its filter, from channels first to channels last."""


def is_static_f32(value: Any) -> bool:
    """Say whether a value is a tensor of f32 whose sizes are known."""
    return is_static(value) and isinstance(value.type.element_type, ir.F32Type)


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
