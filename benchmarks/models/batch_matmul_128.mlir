// GMM: 128x128 times 128x128 in a batch of one, f32.
func.func @batch_matmul(%lhs: tensor<1x128x128xf32>, %rhs: tensor<1x128x128xf32>) -> tensor<1x128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x128x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x128x128xf32>) -> tensor<1x128x128xf32>
  %product = linalg.batch_matmul ins(%lhs, %rhs : tensor<1x128x128xf32>, tensor<1x128x128xf32>)
      outs(%init : tensor<1x128x128xf32>) -> tensor<1x128x128xf32>
  return %product : tensor<1x128x128xf32>
}
