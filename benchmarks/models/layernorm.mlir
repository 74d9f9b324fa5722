// Layer normalisation of 128 rows of 768 with scale and shift, f32.
#row_major = affine_map<(row, column) -> (row, column)>
#per_row = affine_map<(row, column) -> (row)>
#per_column = affine_map<(row, column) -> (column)>

func.func @layernorm(%x: tensor<128x768xf32>, %scale: tensor<768xf32>, %shift: tensor<768xf32>) -> tensor<128x768xf32> {
  %zero = arith.constant 0.0 : f32
  %count = arith.constant 768.0 : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %rows = tensor.empty() : tensor<128xf32>
  %out = tensor.empty() : tensor<128x768xf32>
  %init = linalg.fill ins(%zero : f32) outs(%rows : tensor<128xf32>) -> tensor<128xf32>
  %sum = linalg.generic {indexing_maps = [#row_major, #per_row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<128x768xf32>) outs(%init : tensor<128xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %0 = arith.addf %acc, %in : f32
    linalg.yield %0 : f32
  } -> tensor<128xf32>
  %squares = linalg.generic {
      indexing_maps = [#row_major, #per_row, #per_row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %sum : tensor<128x768xf32>, tensor<128xf32>) outs(%init : tensor<128xf32>) {
  ^bb0(%in: f32, %total: f32, %acc: f32):
    %mean = arith.divf %total, %count : f32
    %centered = arith.subf %in, %mean : f32
    %square = arith.mulf %centered, %centered : f32
    %0 = arith.addf %acc, %square : f32
    linalg.yield %0 : f32
  } -> tensor<128xf32>
  %result = linalg.generic {
      indexing_maps = [#row_major, #per_row, #per_row, #per_column, #per_column, #row_major],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum, %squares, %scale, %shift
          : tensor<128x768xf32>, tensor<128xf32>, tensor<128xf32>, tensor<768xf32>, tensor<768xf32>)
      outs(%out : tensor<128x768xf32>) {
  ^bb0(%in: f32, %total: f32, %spread: f32, %gain: f32, %offset: f32, %unused: f32):
    %mean = arith.divf %total, %count : f32
    %centered = arith.subf %in, %mean : f32
    %variance = arith.divf %spread, %count : f32
    %safe = arith.addf %variance, %epsilon : f32
    %inverse = math.rsqrt %safe : f32
    %normal = arith.mulf %centered, %inverse : f32
    %scaled = arith.mulf %normal, %gain : f32
    %0 = arith.addf %scaled, %offset : f32
    linalg.yield %0 : f32
  } -> tensor<128x768xf32>
  return %result : tensor<128x768xf32>
}
