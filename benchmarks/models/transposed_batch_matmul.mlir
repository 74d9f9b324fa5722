// TBG: attention scores of 12 heads of width 64 at length 128, f32: both inputs are transposed, then multiplied.
#left = affine_map<(b, h, i, j, k) -> (b, h, i, k)>
#right = affine_map<(b, h, i, j, k) -> (b, h, k, j)>
#scores = affine_map<(b, h, i, j, k) -> (b, h, i, j)>
func.func @transposed_batch_matmul(%query: tensor<1x128x12x64xf32>, %value: tensor<1x128x12x64xf32>)
    -> tensor<1x12x128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %rows = tensor.empty() : tensor<1x12x128x64xf32>
  %lhs = linalg.transpose ins(%query : tensor<1x128x12x64xf32>)
      outs(%rows : tensor<1x12x128x64xf32>) permutation = [0, 2, 1, 3]
  %columns = tensor.empty() : tensor<1x12x64x128xf32>
  %rhs = linalg.transpose ins(%value : tensor<1x128x12x64xf32>)
      outs(%columns : tensor<1x12x64x128xf32>) permutation = [0, 2, 3, 1]
  %empty = tensor.empty() : tensor<1x12x128x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x12x128x128xf32>) -> tensor<1x12x128x128xf32>
  %result = linalg.generic {indexing_maps = [#left, #right, #scores],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%lhs, %rhs : tensor<1x12x128x64xf32>, tensor<1x12x64x128xf32>)
      outs(%init : tensor<1x12x128x128xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %product = arith.mulf %x, %y : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<1x12x128x128xf32>
  return %result : tensor<1x12x128x128xf32>
}
