// Kinds of programs as StableHLO: a sort by key, a loop that data end, a spectral filter, a norm over channels, and an
// upsampling that is convolved and joined with another image.
func.func @ranked(%scores: tensor<2x96xf32>, %ids: tensor<2x96xi32>) -> (tensor<2x8xf32>, tensor<2x8xi32>) {
  %sorted:2 = "stablehlo.sort"(%scores, %ids) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %before = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %before : tensor<i1>
  }) : (tensor<2x96xf32>, tensor<2x96xi32>) -> (tensor<2x96xf32>, tensor<2x96xi32>)
  %best = stablehlo.slice %sorted#0 [0:2, 0:8] : (tensor<2x96xf32>) -> tensor<2x8xf32>
  %their = stablehlo.slice %sorted#1 [0:2, 0:8] : (tensor<2x96xi32>) -> tensor<2x8xi32>
  return %best, %their : tensor<2x8xf32>, tensor<2x8xi32>
}

func.func @repeated(%times: tensor<i32>, %w: tensor<48x48xf32>, %x: tensor<48xf32>) -> (tensor<i32>, tensor<48xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %done:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<48xf32>
   cond {
    %more = stablehlo.compare LT, %i, %times, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %p = stablehlo.dot_general %w, %y, contracting_dims = [1] x [0] : (tensor<48x48xf32>, tensor<48xf32>) -> tensor<48xf32>
    %t = stablehlo.tanh %p : tensor<48xf32>
    stablehlo.return %next, %t : tensor<i32>, tensor<48xf32>
  }
  return %done#0, %done#1 : tensor<i32>, tensor<48xf32>
}

func.func @filtered(%frames: tensor<4x16xf32>, %gain: tensor<9xf32>) -> tensor<4x16xf32> {
  %spectrum = stablehlo.fft %frames, type = RFFT, length = [16] : (tensor<4x16xf32>) -> tensor<4x9xcomplex<f32>>
  %none = stablehlo.constant dense<0.0> : tensor<9xf32>
  %factor = stablehlo.complex %gain, %none : tensor<9xcomplex<f32>>
  %factors = stablehlo.broadcast_in_dim %factor, dims = [1] : (tensor<9xcomplex<f32>>) -> tensor<4x9xcomplex<f32>>
  %product = stablehlo.multiply %spectrum, %factors : tensor<4x9xcomplex<f32>>
  %back = stablehlo.fft %product, type = IRFFT, length = [16] : (tensor<4x9xcomplex<f32>>) -> tensor<4x16xf32>
  return %back : tensor<4x16xf32>
}

func.func @normed(%x: tensor<1x24x7x7xf32>, %gain: tensor<24xf32>) -> tensor<1x24x7x7xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<24.0> : tensor<1x7x7xf32>
  %small = stablehlo.constant dense<1.0e-6> : tensor<1x7x7xf32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1x24x7x7xf32>, tensor<f32>) -> tensor<1x7x7xf32>
  %mean = stablehlo.divide %sum, %count : tensor<1x7x7xf32>
  %means = stablehlo.broadcast_in_dim %mean, dims = [0, 2, 3] : (tensor<1x7x7xf32>) -> tensor<1x24x7x7xf32>
  %off = stablehlo.subtract %x, %means : tensor<1x24x7x7xf32>
  %squares = stablehlo.multiply %off, %off : tensor<1x24x7x7xf32>
  %total = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1x24x7x7xf32>, tensor<f32>) -> tensor<1x7x7xf32>
  %variance = stablehlo.divide %total, %count : tensor<1x7x7xf32>
  %safe = stablehlo.add %variance, %small : tensor<1x7x7xf32>
  %root = stablehlo.rsqrt %safe : tensor<1x7x7xf32>
  %roots = stablehlo.broadcast_in_dim %root, dims = [0, 2, 3] : (tensor<1x7x7xf32>) -> tensor<1x24x7x7xf32>
  %gains = stablehlo.broadcast_in_dim %gain, dims = [1] : (tensor<24xf32>) -> tensor<1x24x7x7xf32>
  %scaled = stablehlo.multiply %off, %roots : tensor<1x24x7x7xf32>
  %r = stablehlo.multiply %scaled, %gains : tensor<1x24x7x7xf32>
  return %r : tensor<1x24x7x7xf32>
}

func.func @joined(%low: tensor<1x5x5x12xf32>, %side: tensor<1x10x10x6xf32>, %w: tensor<2x2x12x6xf32>) -> tensor<1x10x10x12xf32> {
  %twice = stablehlo.broadcast_in_dim %low, dims = [0, 1, 3, 5] : (tensor<1x5x5x12xf32>) -> tensor<1x5x2x5x2x12xf32>
  %high = stablehlo.reshape %twice : (tensor<1x5x2x5x2x12xf32>) -> tensor<1x10x10x12xf32>
  %c = stablehlo.convolution(%high, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 1], [0, 1]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x10x10x12xf32>, tensor<2x2x12x6xf32>) -> tensor<1x10x10x6xf32>
  %t = stablehlo.tanh %c : tensor<1x10x10x6xf32>
  %r = stablehlo.concatenate %t, %side, dim = 3 : (tensor<1x10x10x6xf32>, tensor<1x10x10x6xf32>) -> tensor<1x10x10x12xf32>
  return %r : tensor<1x10x10x12xf32>
}
