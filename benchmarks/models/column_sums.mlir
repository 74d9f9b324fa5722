// Sums of the columns of a 512x1024 matrix, f32.
#matrix = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @column_sums(%matrix: tensor<512x1024xf32>) -> tensor<1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1024xf32>) -> tensor<1024xf32>
  %sums = linalg.generic {indexing_maps = [#matrix, #column], iterator_types = ["reduction", "parallel"]}
      ins(%matrix : tensor<512x1024xf32>) outs(%init : tensor<1024xf32>) {
  ^bb0(%x: f32, %sum: f32):
    %next = arith.addf %sum, %x : f32
    linalg.yield %next : f32
  } -> tensor<1024xf32>
  return %sums : tensor<1024xf32>
}
