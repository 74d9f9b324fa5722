// x * y + x on 1024 x 1024 elements of f32.
#matrix = affine_map<(m, n) -> (m, n)>
func.func @main(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %empty = tensor.empty() : tensor<1024x1024xf32>
  %r = linalg.generic {indexing_maps = [#matrix, #matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<1024x1024xf32>, tensor<1024x1024xf32>) outs(%empty : tensor<1024x1024xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %product, %x : f32
    linalg.yield %sum : f32
  } -> tensor<1024x1024xf32>
  return %r : tensor<1024x1024xf32>
}
