// T2D in phases: the same transposed convolution as four convolutions with 2x2 kernels, one for each parity (p, q) of
// the result's row 2a+p and column 2b+q, so that no inserted zero is multiplied. The reversed kernel is a copy.
#all = affine_map<(a, b, c, d) -> (a, b, c, d)>
#image = affine_map<(a, p, b, q, f, r, s, c) -> (a + p + r, b + q + s, c)>
#filter = affine_map<(a, p, b, q, f, r, s, c) -> (r, p, s, q, c, f)>
#result = affine_map<(a, p, b, q, f, r, s, c) -> (a, p, b, q, f)>
func.func @transposed_conv2d(%image: tensor<1x4x4x512xf32>, %filter: tensor<4x4x512x256xf32>)
    -> tensor<1x8x8x256xf32> {
  %zero = arith.constant 0.0 : f32
  %last = arith.constant 3 : index
  %padded = tensor.pad %image low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %w: index, %k: index):
    tensor.yield %zero : f32
  } : tensor<1x4x4x512xf32> to tensor<1x6x6x512xf32>
  %one = tensor.collapse_shape %padded [[0, 1], [2], [3]] : tensor<1x6x6x512xf32> into tensor<6x6x512xf32>
  %other = tensor.empty() : tensor<4x4x512x256xf32>
  %reversed = linalg.generic {
      indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      outs(%other : tensor<4x4x512x256xf32>) {
  ^bb0(%unused: f32):
    %a = linalg.index 0 : index
    %b = linalg.index 1 : index
    %c = linalg.index 2 : index
    %d = linalg.index 3 : index
    %row = arith.subi %last, %a : index
    %column = arith.subi %last, %b : index
    %value = tensor.extract %filter[%row, %column, %c, %d] : tensor<4x4x512x256xf32>
    linalg.yield %value : f32
  } -> tensor<4x4x512x256xf32>
  %phases = tensor.expand_shape %reversed [[0, 1], [2, 3], [4], [5]] output_shape [2, 2, 2, 2, 512, 256]
      : tensor<4x4x512x256xf32> into tensor<2x2x2x2x512x256xf32>
  %empty = tensor.empty() : tensor<4x2x4x2x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x2x4x2x256xf32>) -> tensor<4x2x4x2x256xf32>
  %sums = linalg.generic {indexing_maps = [#image, #filter, #result], iterator_types = [
      "parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%one, %phases : tensor<6x6x512xf32>, tensor<2x2x2x2x512x256xf32>)
      outs(%init : tensor<4x2x4x2x256xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %product = arith.mulf %x, %y : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<4x2x4x2x256xf32>
  %flat = tensor.collapse_shape %sums [[0, 1], [2, 3], [4]]
      : tensor<4x2x4x2x256xf32> into tensor<8x8x256xf32>
  %result = tensor.expand_shape %flat [[0, 1], [2], [3]] output_shape [1, 8, 8, 256]
      : tensor<8x8x256xf32> into tensor<1x8x8x256xf32>
  return %result : tensor<1x8x8x256xf32>
}
