// T2D with zeros: transposed convolution of 4x4x512, kernel 4x4, 256 filters, stride 2, padding 1, f32, as a plain one
// of the image with zeros between its pixels; linalg has no reversed index, so the reversed kernel is a copy.
#all = affine_map<(a, b, c, d) -> (a, b, c, d)>
func.func @transposed_conv2d(%image: tensor<1x4x4x512xf32>, %filter: tensor<4x4x512x256xf32>)
    -> tensor<1x8x8x256xf32> {
  %zero = arith.constant 0.0 : f32
  %last = arith.constant 3 : index
  %large = tensor.empty() : tensor<1x11x11x512xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%large : tensor<1x11x11x512xf32>) -> tensor<1x11x11x512xf32>
  %spread = tensor.insert_slice %image into %zeros[0, 2, 2, 0] [1, 4, 4, 512] [1, 2, 2, 1]
      : tensor<1x4x4x512xf32> into tensor<1x11x11x512xf32>
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
  %empty = tensor.empty() : tensor<1x8x8x256xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x8x8x256xf32>) -> tensor<1x8x8x256xf32>
  %result = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%spread, %reversed : tensor<1x11x11x512xf32>, tensor<4x4x512x256xf32>)
      outs(%init : tensor<1x8x8x256xf32>) -> tensor<1x8x8x256xf32>
  return %result : tensor<1x8x8x256xf32>
}
