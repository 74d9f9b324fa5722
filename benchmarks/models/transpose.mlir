// The transpose of a 1024x768 matrix, f32.
func.func @transpose(%matrix: tensor<1024x768xf32>) -> tensor<768x1024xf32> {
  %empty = tensor.empty() : tensor<768x1024xf32>
  %result = linalg.transpose ins(%matrix : tensor<1024x768xf32>) outs(%empty : tensor<768x1024xf32>) permutation = [1, 0]
  return %result : tensor<768x1024xf32>
}
