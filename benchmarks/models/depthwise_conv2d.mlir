// DEP: depthwise convolution of 112x112x32, kernel 3x3, stride 1, padding 1, f32; channels last.
func.func @depthwise_conv2d(%image: tensor<1x112x112x32xf32>, %filter: tensor<3x3x32xf32>)
    -> tensor<1x112x112x32xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %image low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<1x112x112x32xf32> to tensor<1x114x114x32xf32>
  %empty = tensor.empty() : tensor<1x112x112x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x112x112x32xf32>) -> tensor<1x112x112x32xf32>
  %result = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%padded, %filter : tensor<1x114x114x32xf32>, tensor<3x3x32xf32>)
      outs(%init : tensor<1x112x112x32xf32>) -> tensor<1x112x112x32xf32>
  return %result : tensor<1x112x112x32xf32>
}
