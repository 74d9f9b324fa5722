// GRP: 56x56x64 in 4 groups, kernel 3x3, 128 filters, stride 2, padding 1, f32; channels last, groups outermost.
#image = affine_map<(h, w, g, f, kh, kw, c) -> (2 * h + kh, 2 * w + kw, g, c)>
#filter = affine_map<(h, w, g, f, kh, kw, c) -> (kh, kw, c, g, f)>
#result = affine_map<(h, w, g, f, kh, kw, c) -> (h, w, g, f)>
func.func @grouped_conv2d(%image: tensor<1x56x56x64xf32>, %filter: tensor<3x3x16x128xf32>)
    -> tensor<1x28x28x128xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %image low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<1x56x56x64xf32> to tensor<1x58x58x64xf32>
  %one = tensor.collapse_shape %padded [[0, 1], [2], [3]] : tensor<1x58x58x64xf32> into tensor<58x58x64xf32>
  %groups = tensor.expand_shape %one [[0], [1], [2, 3]] output_shape [58, 58, 4, 16]
      : tensor<58x58x64xf32> into tensor<58x58x4x16xf32>
  %filters = tensor.expand_shape %filter [[0], [1], [2], [3, 4]] output_shape [3, 3, 16, 4, 32]
      : tensor<3x3x16x128xf32> into tensor<3x3x16x4x32xf32>
  %empty = tensor.empty() : tensor<28x28x4x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<28x28x4x32xf32>) -> tensor<28x28x4x32xf32>
  %sums = linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = [
      "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%groups, %filters : tensor<58x58x4x16xf32>, tensor<3x3x16x4x32xf32>)
      outs(%init : tensor<28x28x4x32xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %product = arith.mulf %x, %y : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<28x28x4x32xf32>
  %result = tensor.expand_shape %sums [[0, 1], [2], [3], [4]] output_shape [1, 28, 28, 4, 32]
      : tensor<28x28x4x32xf32> into tensor<1x28x28x4x32xf32>
  %flat = tensor.collapse_shape %result [[0], [1], [2], [3, 4]]
      : tensor<1x28x28x4x32xf32> into tensor<1x28x28x128xf32>
  return %flat : tensor<1x28x28x128xf32>
}
