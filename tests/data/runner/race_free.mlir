// Right: the sum over the rows of a matrix.
util.func public @task(%a: !hal.buffer_view, %out: !hal.buffer_view) -> !hal.buffer_view attributes {iree.abi.stub} {
  %x = hal.tensor.import %a "a" : !hal.buffer_view -> tensor<32x65536xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<65536xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<65536xf32>) -> tensor<65536xf32>
  %r = linalg.reduce ins(%x : tensor<32x65536xf32>) outs(%filled : tensor<65536xf32>) dimensions = [0]
    (%value: f32, %sum: f32) {
      %more = arith.addf %sum, %value : f32
      linalg.yield %more : f32
    }
  %written = hal.tensor.alias %r : tensor<65536xf32> to %out : !hal.buffer_view
  %view = hal.tensor.export %written "r" : tensor<65536xf32> -> !hal.buffer_view
  util.return %view : !hal.buffer_view
}
