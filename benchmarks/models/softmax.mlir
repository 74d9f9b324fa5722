// Softmax over the last dimension, 12x128x128, f32.
func.func @softmax(%scores: tensor<12x128x128xf32>) -> tensor<12x128x128xf32> {
  %empty = tensor.empty() : tensor<12x128x128xf32>
  %result = linalg.softmax dimension(2) ins(%scores : tensor<12x128x128xf32>)
      outs(%empty : tensor<12x128x128xf32>) -> tensor<12x128x128xf32>
  return %result : tensor<12x128x128xf32>
}
