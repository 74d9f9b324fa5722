// A whole program: takes an input, returns a new buffer. Right.
func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = arith.addf %x, %x : tensor<1000xf32>
  return %0 : tensor<1000xf32>
}
