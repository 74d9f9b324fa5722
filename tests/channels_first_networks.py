"""Small networks with channels first, as frameworks export them."""

from __future__ import annotations

import numpy as np

CONVOLUTION = """
  {pad}
  %zero{n} = arith.constant 0.0 : f32
  %empty{n} = tensor.empty() : tensor<{result}xf32>
  %init{n} = linalg.fill ins(%zero{n} : f32) outs(%empty{n} : tensor<{result}xf32>) -> tensor<{result}xf32>
  {filter_of}
  %out{n} = linalg.{op} {{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}
    ins({input}, %f{n} : tensor<{padded}xf32>, tensor<{filter}xf32>) outs(%init{n} : tensor<{result}xf32>)
    -> tensor<{result}xf32>"""
SUM = "\n  %sum = arith.addf %out3, %out4 : tensor<1x32x8x8xf32>"


def padded(value: str, shape: str, result: str, n: int) -> str:
    return f"""%edge{n} = arith.constant 0.0 : f32
  %pad{n} = tensor.pad {value} low[0, 0, 1, 1] high[0, 0, 1, 1] {{
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %edge{n} : f32
  }} : tensor<{shape}xf32> to tensor<{result}xf32>"""


def layer(n: int, op: str, value: str, sizes: tuple[str, str, str], stride: int, pad: str = "") -> str:
    image, taps, result = sizes
    filter_of = f"%f{n} = arith.constant dense<{weights(taps, n)}> : tensor<{taps}xf32>"
    if "pooling" in op:
        filter_of = f"%f{n} = tensor.empty() : tensor<{taps}xf32>"
    return CONVOLUTION.format(
        n=n, op=op, input=value, padded=image, filter=taps, result=result, stride=stride, pad=pad, filter_of=filter_of
    )


def weights(taps: str, n: int) -> str:
    shape = [int(size) for size in taps.split("x")]
    return str(np.random.default_rng(n).integers(-2, 3, shape).astype(np.float64).tolist())


def network() -> str:
    """Return two branches: 3x3, depthwise and pooling; and 1x1 with a stride of 2, whose image has other readers."""
    first = padded("%image", "1x4x18x18", "1x4x20x20", 0)
    second = padded("%out0", "1x16x18x18", "1x16x20x20", 1)
    layers = [
        layer(0, "conv_2d_nchw_fchw", "%pad0", ("1x4x20x20", "16x4x3x3", "1x16x18x18"), 1, first),
        layer(1, "depthwise_conv_2d_nchw_chw", "%pad1", ("1x16x20x20", "16x3x3", "1x16x18x18"), 1, second),
        layer(2, "pooling_nchw_max", "%out1", ("1x16x18x18", "3x3", "1x16x8x8"), 2),
        layer(3, "conv_2d_nchw_fchw", "%out2", ("1x16x8x8", "32x16x1x1", "1x32x8x8"), 1),
        layer(4, "conv_2d_nchw_fchw", "%part", ("1x16x16x16", "32x16x1x1", "1x32x8x8"), 2),
    ]
    part = """
  %part = tensor.extract_slice %out0[0, 0, 1, 1] [1, 16, 16, 16] [1, 1, 1, 1]
    : tensor<1x16x18x18xf32> to tensor<1x16x16x16xf32>"""
    body = "".join([*layers[:4], part, layers[4], SUM])
    return function("1x4x18x18", body, "%sum", "1x32x8x8")


def of_tokens() -> str:
    """Return two products around a padded depthwise convolution, of tokens that become pixels, and pixels tokens."""
    to_image = """
  %none = tensor.empty() : tensor<1x16x64xf32>
  %turned = linalg.transpose ins(%image : tensor<1x64x16xf32>) outs(%none : tensor<1x16x64xf32>) permutation = [0, 2, 1]
  %pixels = tensor.expand_shape %turned [[0], [1], [2, 3]] output_shape [1, 16, 8, 8]
    : tensor<1x16x64xf32> into tensor<1x16x8x8xf32>"""
    to_tokens = """
  %flat = tensor.collapse_shape %out2 [[0], [1], [2, 3]] : tensor<1x32x8x8xf32> into tensor<1x32x64xf32>
  %rows = tensor.empty() : tensor<1x64x32xf32>
  %back = linalg.transpose ins(%flat : tensor<1x32x64xf32>) outs(%rows : tensor<1x64x32xf32>) permutation = [0, 2, 1]"""
    pad = padded("%pixels", "1x16x8x8", "1x16x10x10", 0)
    layers = [
        layer(0, "depthwise_conv_2d_nchw_chw", "%pad0", ("1x16x10x10", "16x3x3", "1x16x8x8"), 1, pad),
        layer(1, "conv_2d_nchw_fchw", "%out0", ("1x16x8x8", "16x16x1x1", "1x16x8x8"), 1),
        layer(2, "conv_2d_nchw_fchw", "%out1", ("1x16x8x8", "32x16x1x1", "1x32x8x8"), 1),
    ]
    return function("1x64x16", "".join([to_image, *layers, to_tokens]), "%back", "1x64x32")


def separable() -> str:
    """Return a product of 128 columns, a padded depthwise convolution of its result, and another product."""
    pad = padded("%out0", "1x128x8x8", "1x128x10x10", 1)
    layers = [
        layer(0, "conv_2d_nchw_fchw", "%image", ("1x16x8x8", "128x16x1x1", "1x128x8x8"), 1),
        layer(1, "depthwise_conv_2d_nchw_chw", "%pad1", ("1x128x10x10", "128x3x3", "1x128x8x8"), 1, pad),
        layer(2, "conv_2d_nchw_fchw", "%out1", ("1x128x8x8", "32x128x1x1", "1x32x8x8"), 1),
    ]
    return function("1x16x8x8", "".join(layers), "%out2", "1x32x8x8")


def function(image: str, body: str, value: str, result: str) -> str:
    arguments, results = f"(%image: tensor<{image}xf32>)", f"tensor<{result}xf32>"
    return f"func.func @main{arguments} -> {results} {{{body}\n  return {value} : {results}\n}}\n"


SHAPES = ("16x16x32x32", "16x16x32x64")
"""The shapes of the convolutions of :func:`two_shapes` that Winograd's algorithm can compute."""


def two_shapes() -> str:
    """Return three 3x3 convolutions of 16x16 pixels, two of one shape, the last one with 64 filters."""
    values, filters, parts = ["%image", "%out0", "%out1"], [32, 32, 64], list[str]()
    for n, (value, count) in enumerate(zip(values, filters, strict=True)):
        pad = padded(value, "1x32x16x16", "1x32x18x18", n)
        sizes = ("1x32x18x18", f"{count}x32x3x3", f"1x{count}x16x16")
        parts.append(layer(n, "conv_2d_nchw_fchw", f"%pad{n}", sizes, 1, pad))
    return function("1x32x16x16", "".join(parts), "%out2", "1x64x16x16")
