// Returns its argument besides a result: both may lie in one buffer.
func.func @main(%x: tensor<1000xf32>) -> (tensor<1000xf32>, tensor<1000xf32>) {
  %sum = arith.addf %x, %x : tensor<1000xf32>
  return %sum, %x : tensor<1000xf32>, tensor<1000xf32>
}
