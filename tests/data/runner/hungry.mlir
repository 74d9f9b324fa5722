// A whole program with right results that fills 2 GB on its way.
func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %rows = tensor.empty() : tensor<500000x1000xf32>
  %many = linalg.broadcast ins(%x : tensor<1000xf32>) outs(%rows : tensor<500000x1000xf32>) dimensions = [0]
  %kept = util.optimization_barrier %many : tensor<500000x1000xf32>
  %row = tensor.extract_slice %kept[4999, 0] [1, 1000] [1, 1] : tensor<500000x1000xf32> to tensor<1000xf32>
  %0 = arith.addf %row, %x : tensor<1000xf32>
  return %0 : tensor<1000xf32>
}
