"""Networks whose convolutions read shuffled channels: blocks of a ShuffleNet, and what may follow them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from channels_first_networks import function, layer, padded, weights

PIXELS = "16x20"
IMAGE = "1x4x18x22"


def joined(n: int, values: str, sizes: tuple[int, int]) -> str:
    """Return a join of two values, ``%joined{n}``."""
    first, second = (f"tensor<1x{size}x{PIXELS}xf32>" for size in sizes)
    result = f"tensor<1x{sum(sizes)}x{PIXELS}xf32>"
    return f"\n  %joined{n} = tensor.concat dim(1) {values} : ({first}, {second}) -> {result}"


def interleaved(n: int | str, value: str, channels: int) -> str:
    """Return a shuffle of the two halves of a value's channels, ``%shuffled{n}``."""
    half, whole = channels // 2, f"tensor<1x{channels}x{PIXELS}xf32>"
    split, turned = f"1x2x{half}x{PIXELS}", f"1x{half}x2x{PIXELS}"
    return f"""
  %parts{n} = tensor.expand_shape {value} [[0], [1, 2], [3], [4]] output_shape [{split.replace("x", ", ")}]
    : {whole} into tensor<{split}xf32>
  %place{n} = tensor.empty() : tensor<{turned}xf32>
  %turned{n} = linalg.transpose ins(%parts{n} : tensor<{split}xf32>) outs(%place{n} : tensor<{turned}xf32>)
    permutation = [0, 2, 1, 3, 4]
  %shuffled{n} = tensor.collapse_shape %turned{n} [[0], [1, 2], [3], [4]] : tensor<{turned}xf32> into {whole}"""


def interleaving(channels: int) -> list[int]:
    """Return where a shuffle of two halves reads its channels."""
    return [half * channels // 2 + place for place in range(channels // 2) for half in range(2)]


def selected(n: int | str, value: str, channels: int, places: Sequence[int], dim: int = 1) -> str:
    """Return channels of a value as PyTorch's exporter writes ``index_select``, ``%shuffled{n}``.

    Args:
        n: A number of its own.
        value: The value.
        channels: How many it has.
        places: Which of them are read.
        dim: The dimension that is read in another order, if not that of channels.
    """
    source = ["1", str(channels), *PIXELS.split("x")]
    result = [*source[:dim], str(len(places)), *source[dim + 1 :]]
    kinds = ([*result, "f32"], [*source, "f32"], [result[dim], "i64"])
    kind, whole, indices = (f"tensor<{'x'.join(each)}>" for each in kinds)
    loops = "".join(f"\n    %loop{each} = linalg.index {each} : index" for each in range(4) if each != dim)
    at = ", ".join("%at" if each == dim else f"%loop{each}" for each in range(4))
    return f"""
  %indices{n} = arith.constant dense<{[*places]}> : {indices}
  %room{n} = tensor.empty() : {kind}
  %shuffled{n} = linalg.generic {{indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d{dim})>,
      affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%indices{n} : {indices}) outs(%room{n} : {kind}) {{
  ^bb0(%index: i64, %o: f32):{loops}
    %at = arith.index_cast %index : i64 to index
    %read = tensor.extract {value}[{at}] : {whole}
    linalg.yield %read : f32
  }} -> {kind}"""


def by_indices(text: str, channels: int = 32) -> str:
    """Return a program whose shuffles of so many channels are written by indices."""
    for n, value in re.findall(r"%parts(\d+) = tensor.expand_shape (%\w+) ", text):
        text = text.replace(interleaved(n, value, channels), selected(n, value, channels, interleaving(channels)))
    return text


def sliced(name: str, value: str, channels: int, first: int, size: int) -> str:
    """Return some channels of a value."""
    return f"""
  %{name} = tensor.extract_slice {value}[0, {first}, 0, 0] [1, {size}, 16, 20] [1, 1, 1, 1]
    : tensor<1x{channels}x{PIXELS}xf32> to tensor<1x{size}x{PIXELS}xf32>"""


def pointwise(n: int, value: str, channels: int, results: int) -> str:
    """Return a convolution of single pixels, ``%out{n}``."""
    sizes = (f"1x{channels}x{PIXELS}", f"{results}x{channels}x1x1", f"1x{results}x{PIXELS}")
    return layer(n, "conv_2d_nchw_fchw", value, sizes, 1)


def elementwise(name: str, value: str, channels: int) -> str:
    """Return an element-wise op that no linear op takes into its weights, with a number per channel."""
    kind, numbers = f"tensor<1x{channels}x{PIXELS}xf32>", f"tensor<{channels}xf32>"
    return f"""
  %{name}_numbers = arith.constant dense<{weights(str(channels), channels)}> : {numbers}
  %{name}_room = tensor.empty() : {kind}
  %{name} = linalg.generic {{indexing_maps = [affine_map<(n, c, y, x) -> (n, c, y, x)>,
      affine_map<(n, c, y, x) -> (c)>, affine_map<(n, c, y, x) -> (n, c, y, x)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins({value}, %{name}_numbers : {kind}, {numbers}) outs(%{name}_room : {kind}) {{
  ^bb0(%x: f32, %n: f32, %o: f32):
    %y = arith.maximumf %x, %floor : f32
    %z = arith.addf %y, %n : f32
    linalg.yield %z : f32
  }} -> {kind}"""


def blocks(count: int = 2, channels: int = 32) -> tuple[str, str]:
    """Return a convolution and some blocks, each of which computes half of the channels; and what they result in."""
    half = channels // 2
    text = "\n  %floor = arith.constant 0.0 : f32"
    text += layer(90, "conv_2d_nchw_fchw", "%image", (IMAGE, f"{channels}x4x3x3", f"1x{channels}x{PIXELS}"), 1)
    text, value = text + interleaved(90, "%out90", channels), "%shuffled90"
    for n in range(count):
        text += sliced(f"kept{n}", value, channels, 0, half) + sliced(f"read{n}", value, channels, half, half)
        text += pointwise(n, f"%read{n}", half, half) + elementwise(f"made{n}", f"%out{n}", half)
        text += joined(n, f"%kept{n}, %made{n}", (half, half)) + interleaved(n, f"%joined{n}", channels)
        value = f"%shuffled{n}"
    return text, value


def ending(end: str, count: int = 2, channels: int = 32) -> str:
    """Return a program of blocks, and of one of the :data:`ENDS`; its result has eight channels."""
    text, value = blocks(count, channels)
    return function(IMAGE, text + ENDS[end].replace("%value", value), "%out80", f"1x8x{PIXELS}")


def _bias(name: str, channels: int) -> str:
    """Return sums that start with a number per channel."""
    kind = f"tensor<1x{channels}x{PIXELS}xf32>"
    return f"""
  %{name}_bias = arith.constant dense<{weights(str(channels), 7)}> : tensor<{channels}xf32>
  %{name}_place = tensor.empty() : {kind}
  %{name} = linalg.broadcast ins(%{name}_bias : tensor<{channels}xf32>) outs(%{name}_place : {kind})
    dimensions = [0, 2, 3]"""


_PAD = "\n  " + padded("%value", f"1x32x{PIXELS}", "1x32x18x22", 81)
_DEPTHWISE = layer(81, "depthwise_conv_2d_nchw_chw", "%pad81", ("1x32x18x22", "32x3x3", f"1x32x{PIXELS}"), 1)
_POOLED = layer(82, "pooling_nchw_max", "%pad81", ("1x32x18x22", "3x3", f"1x32x{PIXELS}"), 1)
_GROUPS = """
  %groups = tensor.expand_shape %value [[0], [1, 2], [3], [4]] output_shape [1, 2, 16, 16, 20]
    : tensor<1x32x16x20xf32> into tensor<1x2x16x16x20xf32>"""
_GROUPED = layer(83, "conv_2d_ngchw_gfchw", "%groups", ("1x2x16x16x20", "2x4x16x1x1", "1x2x4x16x20"), 1)
_GROUPED = _GROUPED.replace("tensor<3xi64>", "tensor<2xi64>")
_MERGED = """
  %out80 = tensor.collapse_shape %out83 [[0], [1, 2], [3], [4]]
    : tensor<1x2x4x16x20xf32> into tensor<1x8x16x20xf32>"""
_FLAT = """
  %flat = tensor.collapse_shape %last [[0], [1], [2, 3]] : tensor<1x32x16x20xf32> into tensor<1x32x320xf32>"""
_MERGED_AT_ONCE = """
  %flat = tensor.collapse_shape %turned87 [[0], [1, 2], [3, 4]] : tensor<1x16x2x16x20xf32> into tensor<1x32x320xf32>"""
_ROWS = layer(86, "conv_1d_ncw_fcw", "%flat", ("1x32x320", "8x32x1", "1x8x320"), 1)
_PIXELS = """
  %out80 = tensor.expand_shape %out86 [[0], [1], [2, 3]] output_shape [1, 8, 16, 20]
    : tensor<1x8x320xf32> into tensor<1x8x16x20xf32>"""
_BOTH = "\n  %out80 = arith.addf %out84, %out85 : tensor<1x8x16x20xf32>"
ENDS = {
    "a product": pointwise(80, "%value", 32, 8),
    "numbers of channels": elementwise("last", "%value", 32) + pointwise(80, "%last", 32, 8),
    "a padded depthwise convolution": _PAD
    + _bias("begin", 32)
    + _DEPTHWISE.replace("outs(%init81", "outs(%begin")
    + pointwise(80, "%out81", 32, 8),
    "two branches": _PAD + _DEPTHWISE + pointwise(84, "%out81", 32, 8) + pointwise(85, "%value", 32, 8) + _BOTH,
    "a pooling": _PAD + _POOLED + pointwise(80, "%out82", 32, 8),
    "pixels in a row": elementwise("last", "%value", 32) + _FLAT + _ROWS + _PIXELS,
    "pixels and channels merged at once": interleaved(87, "%value", 32).rpartition("\n  %shuffled87")[0]
    + _MERGED_AT_ONCE
    + _ROWS
    + _PIXELS,
    "groups": _GROUPS + _GROUPED + _MERGED,
    "groups behind a depthwise convolution": _PAD
    + _DEPTHWISE
    + elementwise("last", "%out81", 32)
    + _GROUPS.replace("%value", "%last")
    + _GROUPED
    + _MERGED,
    "halves exchanged": sliced("low", "%value", 32, 0, 16)
    + sliced("high", "%value", 32, 16, 16)
    + joined(80, "%high, %low", (16, 16))
    + pointwise(80, "%joined80", 32, 8),
}
"""What reads all channels of the last block, by what it is; the value is called ``%value``, the result ``%out80``."""
