// FFN: 128x768 times 768x3072, the first product of a transformer's feed-forward layer, f32.
func.func @ffn(%lhs: tensor<128x768xf32>, %rhs: tensor<768x3072xf32>) -> tensor<128x3072xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x3072xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x3072xf32>) -> tensor<128x3072xf32>
  %product = linalg.matmul ins(%lhs, %rhs : tensor<128x768xf32>, tensor<768x3072xf32>)
      outs(%init : tensor<128x3072xf32>) -> tensor<128x3072xf32>
  return %product : tensor<128x3072xf32>
}
