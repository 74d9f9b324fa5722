func.func @main(%arg0: tensor<1x5x8x17xi8>, %arg1: tensor<1x1x17xi8>) -> (tensor<1x5x8x17xi32>, tensor<1x5x8x17xi32>) {
  %v1 = arith.constant 0 : i32
  %v2 = tensor.empty() : tensor<1x5x8x17xi32>
  %v3 = linalg.fill ins(%v1 : i32) outs(%v2 : tensor<1x5x8x17xi32>) -> tensor<1x5x8x17xi32>
  %v4 = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>} ins(%arg0, %arg1 : tensor<1x5x8x17xi8>, tensor<1x1x17xi8>) outs(%v3 : tensor<1x5x8x17xi32>) -> tensor<1x5x8x17xi32>
  %v5 = tensor.empty() : tensor<1x5x8x17xi32>
  %v6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4 : tensor<1x5x8x17xi32>) outs(%v5 : tensor<1x5x8x17xi32>) {
  ^bb0(%x: i32, %o: i32):
    %t = arith.constant 2 : i32
    %r = arith.shrsi %x, %t : i32
    linalg.yield %r : i32
  } -> tensor<1x5x8x17xi32>
  %v7 = tensor.extract_slice %v6[0, 0, 1, 1][1, 5, 7, 8][1, 1, 1, 2] : tensor<1x5x8x17xi32> to tensor<1x5x7x8xi32>
  %v8 = tensor.empty() : tensor<1x5x8x17xi32>
  %v9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v4 : tensor<1x5x8x17xi32>) outs(%v8 : tensor<1x5x8x17xi32>) {
  ^bb0(%x: i32, %o: i32):
    %t = arith.constant 2 : i32
    %r = arith.shrsi %x, %t : i32
    linalg.yield %r : i32
  } -> tensor<1x5x8x17xi32>
  %v10 = tensor.empty() : tensor<1x5x8x17xi32>
  %v11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v9, %v4 : tensor<1x5x8x17xi32>, tensor<1x5x8x17xi32>) outs(%v10 : tensor<1x5x8x17xi32>) {
  ^bb0(%x: i32, %y: i32, %o: i32):
    %r = arith.addi %x, %y : i32
    linalg.yield %r : i32
  } -> tensor<1x5x8x17xi32>
  return %v11, %v6 : tensor<1x5x8x17xi32>, tensor<1x5x8x17xi32>
}
