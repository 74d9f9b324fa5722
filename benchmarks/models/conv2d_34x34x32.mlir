// Convolution of a 34x34x32 image with 3x3x32x64 filters, stride 1, no padding, f32; channels last.
func.func @conv2d(%image: tensor<1x34x34x32xf32>, %filter: tensor<3x3x32x64xf32>) -> tensor<1x32x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x32x32x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x32x32x64xf32>) -> tensor<1x32x32x64xf32>
  %result = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}
      ins(%image, %filter : tensor<1x34x34x32xf32>, tensor<3x3x32x64xf32>)
      outs(%init : tensor<1x32x32x64xf32>) -> tensor<1x32x32x64xf32>
  return %result : tensor<1x32x32x64xf32>
}
