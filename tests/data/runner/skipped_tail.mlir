// Wrong: computes 60 of 64 rows, as a tiled loop does that forgets its last partial tile.
util.func public @task(%a: !hal.buffer_view, %b: !hal.buffer_view, %out: !hal.buffer_view) -> !hal.buffer_view
    attributes {iree.abi.stub} {
  %x = hal.tensor.import %a "a" : !hal.buffer_view -> tensor<64x64xf32>
  %y = hal.tensor.import %b "b" : !hal.buffer_view -> tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %rows = tensor.extract_slice %x[0, 0] [60, 64] [1, 1] : tensor<64x64xf32> to tensor<60x64xf32>
  %empty = tensor.empty() : tensor<60x64xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<60x64xf32>) -> tensor<60x64xf32>
  %most = linalg.matmul ins(%rows, %y : tensor<60x64xf32>, tensor<64x64xf32>)
      outs(%filled : tensor<60x64xf32>) -> tensor<60x64xf32>
  %before = hal.tensor.import %out "out" : !hal.buffer_view -> tensor<64x64xf32>
  %r = tensor.insert_slice %most into %before[0, 0] [60, 64] [1, 1] : tensor<60x64xf32> into tensor<64x64xf32>
  %written = hal.tensor.alias %r : tensor<64x64xf32> to %out : !hal.buffer_view
  %view = hal.tensor.export %written "r" : tensor<64x64xf32> -> !hal.buffer_view
  util.return %view : !hal.buffer_view
}
