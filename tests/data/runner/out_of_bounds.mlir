// Crashes: reads terabytes away from its input.
util.func public @task(%a: !hal.buffer_view, %b: !hal.buffer_view, %out: !hal.buffer_view) -> !hal.buffer_view
    attributes {iree.abi.stub} {
  %x = hal.tensor.import %a "a" : !hal.buffer_view -> tensor<64x64xf32>
  %y = hal.tensor.import %b "b" : !hal.buffer_view -> tensor<64x64xf32>
  %empty = tensor.empty() : tensor<64x64xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%y : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>) {
  ^bb0(%value: f32, %unused: f32):
    %far = arith.constant 1.0e12 : f32
    %magnitude = math.absf %value : f32
    %scaled = arith.mulf %magnitude, %far : f32
    %integer = arith.fptosi %scaled : f32 to i64
    %i = arith.index_cast %integer : i64 to index
    %read = tensor.extract %x[%i, %i] : tensor<64x64xf32>
    linalg.yield %read : f32
  } -> tensor<64x64xf32>
  %written = hal.tensor.alias %r : tensor<64x64xf32> to %out : !hal.buffer_view
  %view = hal.tensor.export %written "r" : tensor<64x64xf32> -> !hal.buffer_view
  util.return %view : !hal.buffer_view
}
