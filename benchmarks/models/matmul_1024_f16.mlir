// 1024x1024 times 1024x1024, f16 into f32.
func.func @matmul(%lhs: tensor<1024x1024xf16>, %rhs: tensor<1024x1024xf16>) -> tensor<1024x1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1024x1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %product = linalg.matmul ins(%lhs, %rhs : tensor<1024x1024xf16>, tensor<1024x1024xf16>)
      outs(%init : tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %product : tensor<1024x1024xf32>
}
