"""A program with two padded images, one of which IREE 3.13 cannot read in place."""

PAD = """
  %{result} = tensor.pad %{image} low[0, 1, 1, 0] high[0, 1, 1, 0] {{
  ^bb0(%a{n}: index, %b{n}: index, %c{n}: index, %d{n}: index):
    tensor.yield %zero : f32
  }} : tensor<1x16x16x{channels}xf32> to tensor<1x18x18x{channels}xf32>"""


def convolved_and_transformed() -> str:
    """Return a 3x3 convolution, and the rows of its result in overlapping tiles, multiplied by a matrix.

    With padding fused into the op, the tiles crash the compiler.
    """
    return f"""
#read = affine_map<(i, n, p, x, c, a) -> (n, p * 4 + a, x, c)>
#matrix = affine_map<(i, n, p, x, c, a) -> (i, a)>
#written = affine_map<(i, n, p, x, c, a) -> (i, n, p, x, c)>
func.func @main(%image: tensor<1x16x16x4xf32>, %taps: tensor<3x3x4x8xf32>, %m: tensor<6x6xf32>)
    -> tensor<6x1x4x18x8xf32> {{
  %zero = arith.constant 0.0 : f32{PAD.format(result="wide", image="image", channels=4, n=0)}
  %empty = tensor.empty() : tensor<1x16x16x8xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xf32>
  %sums = linalg.conv_2d_nhwc_hwcf ins(%wide, %taps : tensor<1x18x18x4xf32>, tensor<3x3x4x8xf32>)
    outs(%start : tensor<1x16x16x8xf32>) -> tensor<1x16x16x8xf32>
  {PAD.format(result="wider", image="sums", channels=8, n=1)}
  %none = tensor.empty() : tensor<6x1x4x18x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%none : tensor<6x1x4x18x8xf32>) -> tensor<6x1x4x18x8xf32>
  %tiles = linalg.generic {{indexing_maps = [#read, #matrix, #written],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}}
      ins(%wider, %m : tensor<1x18x18x8xf32>, tensor<6x6xf32>) outs(%init : tensor<6x1x4x18x8xf32>) {{
  ^bb0(%pixel: f32, %factor: f32, %sum: f32):
    %product = arith.mulf %pixel, %factor : f32
    %more = arith.addf %sum, %product : f32
    linalg.yield %more : f32
  }} -> tensor<6x1x4x18x8xf32>
  return %tiles : tensor<6x1x4x18x8xf32>
}}
"""
