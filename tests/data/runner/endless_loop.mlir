// Hangs: loops until a value that never changes is zero.
util.func public @task(%a: !hal.buffer_view, %b: !hal.buffer_view, %out: !hal.buffer_view) -> !hal.buffer_view
    attributes {iree.abi.stub} {
  %x = hal.tensor.import %a "a" : !hal.buffer_view -> tensor<64x64xf32>
  %y = hal.tensor.import %b "b" : !hal.buffer_view -> tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%y : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>) {
  ^bb0(%value: f32, %unused: f32):
    %result = scf.while (%state = %value) : (f32) -> f32 {
      %again = arith.cmpf une, %state, %zero : f32
      scf.condition(%again) %state : f32
    } do {
    ^bb0(%state: f32):
      %next = math.absf %state : f32
      scf.yield %next : f32
    }
    linalg.yield %result : f32
  } -> tensor<64x64xf32>
  %written = hal.tensor.alias %r : tensor<64x64xf32> to %out : !hal.buffer_view
  %view = hal.tensor.export %written "r" : tensor<64x64xf32> -> !hal.buffer_view
  util.return %view : !hal.buffer_view
}
