// Three dispatches in one function: attention scores of 4 heads (a matrix multiplication), their softmax, and a gated
// activation beside them (an element-wise op).
#same = affine_map<(i, j) -> (i, j)>
func.func @main(%q: tensor<4x128x64xf32>, %k: tensor<4x64x128xf32>, %x: tensor<256x512xf32>, %gate: tensor<256x512xf32>)
    -> (tensor<4x128x128xf32>, tensor<256x512xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<4x128x128xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
  %scores = linalg.batch_matmul ins(%q, %k : tensor<4x128x64xf32>, tensor<4x64x128xf32>)
                                outs(%filled : tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
  %weights = linalg.softmax dimension(2) ins(%scores : tensor<4x128x128xf32>)
                                         outs(%empty : tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
  %place = tensor.empty() : tensor<256x512xf32>
  %gated = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x, %gate : tensor<256x512xf32>, tensor<256x512xf32>) outs(%place : tensor<256x512xf32>) {
    ^bb0(%value: f32, %open: f32, %out: f32):
      %negative = arith.negf %open : f32
      %power = math.exp %negative : f32
      %below = arith.addf %power, %one : f32
      %result = arith.divf %value, %below : f32
      linalg.yield %result : f32
  } -> tensor<256x512xf32>
  return %weights, %gated : tensor<4x128x128xf32>, tensor<256x512xf32>
}
