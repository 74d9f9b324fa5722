// Wrong in one element of 4096.
util.func public @task(%a: !hal.buffer_view, %b: !hal.buffer_view, %out: !hal.buffer_view) -> !hal.buffer_view
    attributes {iree.abi.stub} {
  %x = hal.tensor.import %a "a" : !hal.buffer_view -> tensor<64x64xf32>
  %y = hal.tensor.import %b "b" : !hal.buffer_view -> tensor<64x64xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %product = linalg.matmul ins(%x, %y : tensor<64x64xf32>, tensor<64x64xf32>)
      outs(%filled : tensor<64x64xf32>) -> tensor<64x64xf32>

  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%product : tensor<64x64xf32>) outs(%empty : tensor<64x64xf32>) {
  ^bb0(%value: f32, %unused: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %row = arith.constant 17 : index
    %column = arith.constant 33 : index
    %here = arith.cmpi eq, %i, %row : index
    %there = arith.cmpi eq, %j, %column : index
    %both = arith.andi %here, %there : i1
    %one = arith.constant 1.0 : f32
    %off = arith.addf %value, %one : f32
    %result = arith.select %both, %off, %value : f32
    linalg.yield %result : f32
  } -> tensor<64x64xf32>
  %written = hal.tensor.alias %r : tensor<64x64xf32> to %out : !hal.buffer_view
  %view = hal.tensor.export %written "r" : tensor<64x64xf32> -> !hal.buffer_view
  util.return %view : !hal.buffer_view
}
