"""Blocks of a ShuffleNet: channels are split, one half goes through a convolution, both are joined and shuffled."""

from __future__ import annotations

from channels_first_networks import function, layer

SHAPE = "1x16x6x10"


def half(name: str, image: str, offset: int, shape: str = SHAPE) -> str:
    batch, channels, rows, columns = map(int, shape.split("x"))
    part = f"{batch}, {channels // 2}, {rows}, {columns}"
    return f"""
  %{name} = tensor.extract_slice {image}[0, {offset}, 0, 0] [{part}] [1, 1, 1, 1]
    : tensor<{shape}xf32> to tensor<{batch}x{channels // 2}x{rows}x{columns}xf32>"""


SHUFFLE = """
  %joined{n} = tensor.concat dim(1) {halves} : (tensor<1x8x6x10xf32>, tensor<1x8x6x10xf32>) -> tensor<1x16x6x10xf32>
  %parts{n} = tensor.expand_shape %joined{n} [[0], [1, 2], [3], [4]] output_shape [1, 2, 8, 6, 10]
    : tensor<1x16x6x10xf32> into tensor<1x2x8x6x10xf32>
  %place{n} = tensor.empty() : tensor<1x8x2x6x10xf32>
  %turned{n} = linalg.transpose ins(%parts{n} : tensor<1x2x8x6x10xf32>) outs(%place{n} : tensor<1x8x2x6x10xf32>)
    permutation = [0, 2, 1, 3, 4]
  %shuffled{n} = tensor.collapse_shape %turned{n} [[0], [1, 2], [3], [4]]
    : tensor<1x8x2x6x10xf32> into tensor<1x16x6x10xf32>"""


def block(n: int, image: str) -> str:
    """Return a block of an image; its result is ``%shuffled{n}``."""
    halves = half(f"left{n}", image, 0) + half(f"right{n}", image, 8)
    product = layer(n, "conv_2d_nchw_fchw", f"%right{n}", ("1x8x6x10", "8x8x1x1", "1x8x6x10"), 1)
    return halves + product + SHUFFLE.format(n=n, halves=f"%left{n}, %out{n}")


def shuffled(blocks: int = 2) -> str:
    """Return a convolution, some blocks, and a convolution."""
    body, image = layer(10, "conv_2d_nchw_fchw", "%image", ("1x4x8x12", "16x4x3x3", SHAPE), 1), "%out10"
    for n in range(blocks):
        body, image = body + block(n, image), f"%shuffled{n}"
    body += layer(11, "conv_2d_nchw_fchw", image, (SHAPE, "8x16x1x1", "1x8x6x10"), 1)
    return function("1x4x8x12", body, "%out11", "1x8x6x10")
