// x * y + x on 1,000,003 elements of f32, a prime number.
#vector = affine_map<(i) -> (i)>
func.func @main(%a: tensor<1000003xf32>, %b: tensor<1000003xf32>) -> tensor<1000003xf32> {
  %empty = tensor.empty() : tensor<1000003xf32>
  %r = linalg.generic {indexing_maps = [#vector, #vector, #vector], iterator_types = ["parallel"]}
      ins(%a, %b : tensor<1000003xf32>, tensor<1000003xf32>) outs(%empty : tensor<1000003xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %product = arith.mulf %x, %y : f32
    %sum = arith.addf %product, %x : f32
    linalg.yield %sum : f32
  } -> tensor<1000003xf32>
  return %r : tensor<1000003xf32>
}
