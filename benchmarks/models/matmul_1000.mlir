// 1000x1000 times 1000x1000, f32.
func.func @matmul(%lhs: tensor<1000x1000xf32>, %rhs: tensor<1000x1000xf32>) -> tensor<1000x1000xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1000x1000xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  %product = linalg.matmul ins(%lhs, %rhs : tensor<1000x1000xf32>, tensor<1000x1000xf32>)
      outs(%init : tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  return %product : tensor<1000x1000xf32>
}
