// 8 products of 64 x 128 times 128 x 96, f32.
func.func @main(%a: tensor<8x64x128xf32>, %b: tensor<8x128x96xf32>) -> tensor<8x64x96xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x64x96xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x64x96xf32>) -> tensor<8x64x96xf32>
  %c = linalg.batch_matmul ins(%a, %b : tensor<8x64x128xf32>, tensor<8x128x96xf32>)
      outs(%filled : tensor<8x64x96xf32>) -> tensor<8x64x96xf32>
  return %c : tensor<8x64x96xf32>
}
