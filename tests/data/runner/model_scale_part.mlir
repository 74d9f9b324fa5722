// Wrong: leaves the last 100 elements of the buffer that it returns as they were.
func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %part = tensor.extract_slice %x[0] [900] [1] : tensor<1000xf32> to tensor<900xf32>
  %0 = arith.addf %part, %part : tensor<900xf32>
  %empty = tensor.empty() : tensor<1000xf32>
  %1 = tensor.insert_slice %0 into %empty[0] [900] [1] : tensor<900xf32> into tensor<1000xf32>
  return %1 : tensor<1000xf32>
}
