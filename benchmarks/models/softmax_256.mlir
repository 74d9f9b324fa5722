// SFM: softmax over the rows of a 256x256 matrix, f32.
func.func @softmax(%scores: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %empty = tensor.empty() : tensor<256x256xf32>
  %result = linalg.softmax dimension(1) ins(%scores : tensor<256x256xf32>)
      outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  return %result : tensor<256x256xf32>
}
