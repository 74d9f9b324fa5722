// NRM: Euclidean norm of a 256x256 matrix in a batch of one, f32.
#matrix = affine_map<(b, i, j) -> (b, i, j)>
#batch = affine_map<(b, i, j) -> (b)>
#each = affine_map<(b) -> (b)>
func.func @norm(%matrix: tensor<1x256x256xf32>) -> tensor<1xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1xf32>) -> tensor<1xf32>
  %squares = linalg.generic {
      indexing_maps = [#matrix, #batch], iterator_types = ["parallel", "reduction", "reduction"]}
      ins(%matrix : tensor<1x256x256xf32>) outs(%init : tensor<1xf32>) {
  ^bb0(%x: f32, %sum: f32):
    %square = arith.mulf %x, %x : f32
    %next = arith.addf %sum, %square : f32
    linalg.yield %next : f32
  } -> tensor<1xf32>
  %result = linalg.generic {indexing_maps = [#each, #each], iterator_types = ["parallel"]}
      ins(%squares : tensor<1xf32>) outs(%empty : tensor<1xf32>) {
  ^bb0(%sum: f32, %unused: f32):
    %root = math.sqrt %sum : f32
    linalg.yield %root : f32
  } -> tensor<1xf32>
  return %result : tensor<1xf32>
}
