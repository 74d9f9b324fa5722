// C = A * B, f32: 96 x 72 times 72 x 120.
func.func @main(%a: tensor<96x72xf32>, %b: tensor<72x120xf32>) -> tensor<96x120xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<96x120xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<96x120xf32>) -> tensor<96x120xf32>
  %c = linalg.matmul ins(%a, %b : tensor<96x72xf32>, tensor<72x120xf32>) outs(%filled : tensor<96x120xf32>) -> tensor<96x120xf32>
  return %c : tensor<96x120xf32>
}
