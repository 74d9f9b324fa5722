// The product of two matrices: the reference.
util.func public @task(%a: !hal.buffer_view, %b: !hal.buffer_view, %out: !hal.buffer_view) -> !hal.buffer_view
    attributes {iree.abi.stub} {
  %x = hal.tensor.import %a "a" : !hal.buffer_view -> tensor<64x64xf32>
  %y = hal.tensor.import %b "b" : !hal.buffer_view -> tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.matmul ins(%x, %y : tensor<64x64xf32>, tensor<64x64xf32>)
      outs(%filled : tensor<64x64xf32>) -> tensor<64x64xf32>
  %written = hal.tensor.alias %r : tensor<64x64xf32> to %out : !hal.buffer_view
  %view = hal.tensor.export %written "r" : tensor<64x64xf32> -> !hal.buffer_view
  util.return %view : !hal.buffer_view
}
