// 12 products of 128x64 times 64x128, f32: an attention head's scores.
func.func @batch_matmul(%lhs: tensor<12x128x64xf32>, %rhs: tensor<12x64x128xf32>) -> tensor<12x128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<12x128x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<12x128x128xf32>) -> tensor<12x128x128xf32>
  %product = linalg.batch_matmul ins(%lhs, %rhs : tensor<12x128x64xf32>, tensor<12x64x128xf32>)
      outs(%init : tensor<12x128x128xf32>) -> tensor<12x128x128xf32>
  return %product : tensor<12x128x128xf32>
}
