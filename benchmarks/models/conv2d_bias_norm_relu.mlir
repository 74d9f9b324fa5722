// CBR: the convolution of conv2d.mlir, then bias, scale and offset of a folded batch normalisation, and ReLU, f32.
#all = affine_map<(n, h, w, f) -> (n, h, w, f)>
#channel = affine_map<(n, h, w, f) -> (f)>
func.func @conv2d_bias_norm_relu(%image: tensor<1x224x224x3xf32>, %filter: tensor<7x7x3x64xf32>,
    %bias: tensor<64xf32>, %offset: tensor<64xf32>, %scale: tensor<64xf32>) -> tensor<1x112x112x64xf32> {
  %zero = arith.constant 0.0 : f32
  %padded = tensor.pad %image low[0, 3, 3, 0] high[0, 3, 3, 0] {
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<1x224x224x3xf32> to tensor<1x230x230x3xf32>
  %empty = tensor.empty() : tensor<1x112x112x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x112x112x64xf32>) -> tensor<1x112x112x64xf32>
  %sums = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%padded, %filter : tensor<1x230x230x3xf32>, tensor<7x7x3x64xf32>)
      outs(%init : tensor<1x112x112x64xf32>) -> tensor<1x112x112x64xf32>
  %result = linalg.generic {indexing_maps = [#all, #channel, #channel, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sums, %bias, %scale, %offset
          : tensor<1x112x112x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
      outs(%empty : tensor<1x112x112x64xf32>) {
  ^bb0(%sum: f32, %b: f32, %s: f32, %o: f32, %unused: f32):
    %biased = arith.addf %sum, %b : f32
    %scaled = arith.mulf %biased, %s : f32
    %shifted = arith.addf %scaled, %o : f32
    %relu = arith.maximumf %shifted, %zero : f32
    linalg.yield %relu : f32
  } -> tensor<1x112x112x64xf32>
  return %result : tensor<1x112x112x64xf32>
}
