// One token through a linear layer with bias and SiLU: y = silu(x * W + b), 2048 to 2048 features, f32.
// A language model does this for every token it writes. This is the program that `make tune` tunes.
#element = affine_map<(row, column) -> (row, column)>
#column = affine_map<(row, column) -> (column)>

func.func @linear_silu(%x: tensor<1x2048xf32>, %weight: tensor<2048x2048xf32>, %bias: tensor<2048xf32>)
    -> tensor<1x2048xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<1x2048xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x2048xf32>) -> tensor<1x2048xf32>
  %product = linalg.matmul ins(%x, %weight : tensor<1x2048xf32>, tensor<2048x2048xf32>)
      outs(%init : tensor<1x2048xf32>) -> tensor<1x2048xf32>
  %result = linalg.generic {indexing_maps = [#element, #column, #element], iterator_types = ["parallel", "parallel"]}
      ins(%product, %bias : tensor<1x2048xf32>, tensor<2048xf32>) outs(%empty : tensor<1x2048xf32>) {
  ^bb0(%in: f32, %offset: f32, %unused: f32):
    %biased = arith.addf %in, %offset : f32
    %negated = arith.negf %biased : f32
    %power = math.exp %negated : f32
    %denominator = arith.addf %power, %one : f32
    %0 = arith.divf %biased, %denominator : f32
    linalg.yield %0 : f32
  } -> tensor<1x2048xf32>
  return %result : tensor<1x2048xf32>
}
