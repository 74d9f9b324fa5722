// 4096x4096 times 4096x4096, f32.
func.func @matmul(%lhs: tensor<4096x4096xf32>, %rhs: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4096x4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %product = linalg.matmul ins(%lhs, %rhs : tensor<4096x4096xf32>, tensor<4096x4096xf32>)
      outs(%init : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %product : tensor<4096x4096xf32>
}
