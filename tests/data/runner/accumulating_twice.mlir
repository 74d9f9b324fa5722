// Wrong: adds the product of accumulating twice, in place.
func.func @main(%a: tensor<64x64xf32>, %sum: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %once = linalg.matmul ins(%a, %a : tensor<64x64xf32>, tensor<64x64xf32>) outs(%sum : tensor<64x64xf32>)
      -> tensor<64x64xf32>
  %twice = linalg.matmul ins(%a, %a : tensor<64x64xf32>, tensor<64x64xf32>) outs(%once : tensor<64x64xf32>)
      -> tensor<64x64xf32>
  return %twice : tensor<64x64xf32>
}
