// C1D: convolution of length 256 with 64 channels, kernel 3, 128 filters, stride 2, padding 1, f32; channels last.
func.func @conv1d(%signal: tensor<1x256x64xf32>, %filter: tensor<3x64x128xf32>) -> tensor<1x128x128xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %signal low[0, 1, 0] high[0, 1, 0] {
  ^bb0(%n: index, %l: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<1x256x64xf32> to tensor<1x258x64xf32>
  %empty = tensor.empty() : tensor<1x128x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x128x128xf32>) -> tensor<1x128x128xf32>
  %result = linalg.conv_1d_nwc_wcf {dilations = dense<1> : vector<1xi64>, strides = dense<2> : vector<1xi64>}
      ins(%padded, %filter : tensor<1x258x64xf32>, tensor<3x64x128xf32>)
      outs(%init : tensor<1x128x128xf32>) -> tensor<1x128x128xf32>
  return %result : tensor<1x128x128xf32>
}
