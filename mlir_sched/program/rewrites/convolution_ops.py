"""Queries of linalg's named convolutions, for the rewrites."""

from typing import Any

from iree.compiler import ir

CHANNELS_LAST = ("linalg.conv_1d_nwc_wcf", "linalg.conv_2d_nhwc_hwcf", "linalg.conv_3d_ndhwc_dhwcf")
"""The convolutions over images (batch, pixels, channels) and filters (taps, channels, filters), by rank - 1."""

PLANE_FIRST, PLANE_LAST = "linalg.conv_2d_nchw_fchw", CHANNELS_LAST[1]
"""The two-dimensional convolutions with channels first, and with channels last."""


def layouts(spatial: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the orders of the dims of an image with so many spatial ones: to channels last, and back to first."""
    return (0, *range(2, spatial + 2), 1), (0, spatial + 1, *range(1, spatial + 1))


TO_LAST, TO_FIRST = layouts(2)
"""Orders of the dims of a two-dimensional image: from channels first to channels last, and back."""
FILTER_TO_LAST = (2, 3, 1, 0)
"""Order of the dims of its filter, from channels first to channels last."""

_OF_IMAGES = ("linalg.generic", "tensor.concat", "tensor.pad")
"""Ops between convolutions, whose results may be images again."""


def is_static_f32(value: Any) -> bool:
    """Say whether a value is a tensor of f32 whose sizes are known."""
    kind = value.type
    return isinstance(kind, ir.RankedTensorType) and kind.has_static_shape and isinstance(kind.element_type, ir.F32Type)


def leads_to_convolutions(image: Any) -> bool:
    """Say whether a convolution or a pooling reads an image, or an image that other ops make of it."""
    waiting, seen = [image], {image}
    while waiting:
        for op in (use.owner.operation for use in waiting.pop().uses):
            if "conv_" in op.name or "pooling_" in op.name:
                return True
            reader = op.parent.operation if op.name == "tensor.extract" else op
            found = [result for result in reader.results if reader.name in _OF_IMAGES and result not in seen]
            waiting += [result for result in found if result.type.rank == image.type.rank]
            seen |= set(found)
    return False


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
