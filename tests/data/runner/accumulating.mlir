// Adds a product to its second argument, which IREE 3.13 overwrites.
func.func @main(%a: tensor<64x64xf32>, %sum: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %result = linalg.matmul ins(%a, %a : tensor<64x64xf32>, tensor<64x64xf32>) outs(%sum : tensor<64x64xf32>)
      -> tensor<64x64xf32>
  return %result : tensor<64x64xf32>
}
