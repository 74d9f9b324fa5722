// Attention scores of 4 heads, and a gate: a matrix multiplication, a softmax and an element-wise op in one function.
#read = affine_map<(h, i, j) -> (h, i, j)>
#row = affine_map<(h, i, j) -> (j)>
func.func @main(%q: tensor<4x128x64xf32>, %k: tensor<4x64x128xf32>, %mask: tensor<128xf32>, %gate: tensor<4x128x128xf32>)
    -> tensor<4x128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x128x128xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
  %scores = linalg.batch_matmul ins(%q, %k : tensor<4x128x64xf32>, tensor<4x64x128xf32>)
                                outs(%filled : tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
  %weights = linalg.softmax dimension(2) ins(%scores : tensor<4x128x128xf32>)
                                         outs(%empty : tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
  %gated = linalg.generic {indexing_maps = [#read, #read, #row, #read], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%weights, %gate, %mask : tensor<4x128x128xf32>, tensor<4x128x128xf32>, tensor<128xf32>)
      outs(%empty : tensor<4x128x128xf32>) {
    ^bb0(%weight: f32, %open: f32, %kept: f32, %out: f32):
      %masked = arith.mulf %weight, %kept : f32
      %result = arith.mulf %masked, %open : f32
      linalg.yield %result : f32
  } -> tensor<4x128x128xf32>
  return %gated : tensor<4x128x128xf32>
}
