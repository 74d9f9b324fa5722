"""Small networks with channels first, as frameworks export them."""

from __future__ import annotations

import numpy as np

CONVOLUTION = """
  {pad}
  %zero{n} = arith.constant 0.0 : f32
  %empty{n} = tensor.empty() : tensor<{result}xf32>
  %init{n} = linalg.fill ins(%zero{n} : f32) outs(%empty{n} : tensor<{result}xf32>) -> tensor<{result}xf32>
  {filter_of}
  %out{n} = linalg.{op} {{dilations = dense<1> : tensor<{spatial}xi64>,
      strides = dense<{stride}> : tensor<{spatial}xi64>}}
    ins({input}, %f{n} : tensor<{padded}xf32>, tensor<{filter}xf32>) outs(%init{n} : tensor<{result}xf32>)
    -> tensor<{result}xf32>"""
SUM = "\n  %sum = arith.addf %out3, %out4 : tensor<1x32x8x8xf32>"


def padded(value: str, shape: str, result: str, n: int) -> str:
    spatial = shape.count("x") - 1
    widths, indices = "0, 0" + ", 1" * spatial, ", ".join(f"%at{dim}: index" for dim in range(spatial + 2))
    return f"""%edge{n} = arith.constant 0.0 : f32
  %pad{n} = tensor.pad {value} low[{widths}] high[{widths}] {{
  ^bb0({indices}):
    tensor.yield %edge{n} : f32
  }} : tensor<{shape}xf32> to tensor<{result}xf32>"""


def layer(n: int, op: str, value: str, sizes: tuple[str, str, str], stride: int, pad: str = "") -> str:
    image, taps, result = sizes
    filter_of = f"%f{n} = arith.constant dense<{weights(taps, n)}> : tensor<{taps}xf32>"
    if "pooling" in op:
        filter_of = f"%f{n} = tensor.empty() : tensor<{taps}xf32>"
    return CONVOLUTION.format(
        n=n,
        op=op,
        input=value,
        padded=image,
        filter=taps,
        result=result,
        stride=stride,
        spatial=image.count("x") - 1,
        pad=pad,
        filter_of=filter_of,
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


RELU = """
  %floor = arith.constant 0.0 : f32
  %room = tensor.empty() : tensor<1x16x16x16xf32>
  %relu = linalg.generic {indexing_maps = [affine_map<(n, c, y, x) -> (n, c, y, x)>,
      affine_map<(n, c, y, x) -> (n, c, y, x)>, affine_map<(n, c, y, x) -> (n, c, y, x)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%out0, %out1 : tensor<1x16x16x16xf32>, tensor<1x16x16x16xf32>) outs(%room : tensor<1x16x16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %both = arith.addf %a, %b : f32
    %kept = arith.maximumf %both, %floor : f32
    linalg.yield %kept : f32
  } -> tensor<1x16x16x16xf32>"""
"""The end of a residual block."""


def residual_branches() -> str:
    """Return a block whose first branch reads every second pixel of the end of another block, and whose second all."""
    third = padded("%out2", "1x16x16x16", "1x16x18x18", 3)
    layers = [
        layer(0, "conv_2d_nchw_fchw", "%image", ("1x4x16x16", "16x4x1x1", "1x16x16x16"), 1),
        layer(1, "conv_2d_nchw_fchw", "%image", ("1x4x16x16", "16x4x1x1", "1x16x16x16"), 1),
        layer(4, "conv_2d_nchw_fchw", "%relu", ("1x16x16x16", "32x16x1x1", "1x32x8x8"), 2),
        layer(2, "conv_2d_nchw_fchw", "%relu", ("1x16x16x16", "16x16x1x1", "1x16x16x16"), 1),
        layer(3, "conv_2d_nchw_fchw", "%pad3", ("1x16x18x18", "32x16x3x3", "1x32x8x8"), 2, third),
    ]
    return function("1x4x16x16", "".join([*layers[:2], RELU, *layers[2:], SUM]), "%sum", "1x32x8x8")


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


POSITIONS = """
  %none = tensor.empty() : tensor<1x8x32xf32>
  %rows = linalg.transpose ins(%out2 : tensor<1x32x8xf32>) outs(%none : tensor<1x8x32xf32>) permutation = [0, 2, 1]
  %uncounted = tensor.empty() : tensor<8xi64>
  %numbers = linalg.generic {{indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}}
      outs(%uncounted : tensor<8xi64>) {{
  ^bb0(%o: i64):
    %i = linalg.index 0 : index
    %number = arith.index_cast %i : index to i64
    linalg.yield %number : i64
  }} -> tensor<8xi64>
  %table = arith.constant dense<{table}> : tensor<12x32xf32>
  %end = arith.constant 12 : index
  %unread = tensor.empty() : tensor<8x32xf32>
  %positions = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>],
      iterator_types = ["parallel", "parallel"]}} ins(%numbers : tensor<8xi64>) outs(%unread : tensor<8x32xf32>) {{
  ^bb0(%number: i64, %o: f32):
    %row = arith.index_cast %number : i64 to index
    %column = linalg.index {column} : index
    %inside = arith.cmpi slt, %row, %end : index
    cf.assert %inside, "index must be smaller than dim size"
    %read = tensor.extract %table[%row, %column] : tensor<12x32xf32>
    linalg.yield %read : f32
  }} -> tensor<8x32xf32>
  %sum = linalg.generic {{indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>,
      affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%rows, %positions : tensor<1x8x32xf32>, tensor<8x32xf32>) outs(%none : tensor<1x8x32xf32>) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %added = arith.addf %x, %y : f32
    linalg.yield %added : f32
  }} -> tensor<1x8x32xf32>"""


def audio(column: int = 1) -> str:
    """Return three padded one-dimensional convolutions, one of them depthwise, whose tokens get embedded positions.

    Args:
        column: The loop whose index is the column of the table that the embeddings are read at; 1 for all columns.
    """
    pads = [
        padded("%image", "1x4x16", "1x4x18", 0),
        padded("%out0", "1x16x16", "1x16x18", 1),
        padded("%out1", "1x16x16", "1x16x18", 2),
    ]
    layers = [
        layer(0, "conv_1d_ncw_fcw", "%pad0", ("1x4x18", "16x4x3", "1x16x16"), 1, pads[0]),
        layer(1, "depthwise_conv_1d_ncw_cw", "%pad1", ("1x16x18", "16x3", "1x16x16"), 1, pads[1]),
        layer(2, "conv_1d_ncw_fcw", "%pad2", ("1x16x18", "32x16x3", "1x32x8"), 2, pads[2]),
    ]
    positions = POSITIONS.format(table=weights("12x32", 9), column=column)
    return function("1x4x16", "".join([*layers, positions]), "%sum", "1x8x32")


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
