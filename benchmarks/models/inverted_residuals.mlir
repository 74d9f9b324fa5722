// A small network of MobileNetV2's blocks (a convolution with stride 2, four inverted residuals, a mean, a classifier):
// image 96x96x3, channels first, batch 1, f32.
func.func @main(%arg0: tensor<1x3x96x96xf32>, %arg1: tensor<16x3x3x3xf32>, %arg2: tensor<16xf32>, %arg3: tensor<64x16x1x1xf32>, %arg4: tensor<64xf32>, %arg5: tensor<64x3x3xf32>, %arg6: tensor<64xf32>, %arg7: tensor<24x64x1x1xf32>, %arg8: tensor<24xf32>, %arg9: tensor<96x24x1x1xf32>, %arg10: tensor<96xf32>, %arg11: tensor<96x3x3xf32>, %arg12: tensor<96xf32>, %arg13: tensor<24x96x1x1xf32>, %arg14: tensor<24xf32>, %arg15: tensor<96x24x1x1xf32>, %arg16: tensor<96xf32>, %arg17: tensor<96x3x3xf32>, %arg18: tensor<96xf32>, %arg19: tensor<40x96x1x1xf32>, %arg20: tensor<40xf32>, %arg21: tensor<160x40x1x1xf32>, %arg22: tensor<160xf32>, %arg23: tensor<160x3x3xf32>, %arg24: tensor<160xf32>, %arg25: tensor<40x160x1x1xf32>, %arg26: tensor<40xf32>, %arg27: tensor<160x40x1x1xf32>, %arg28: tensor<160xf32>, %arg29: tensor<160x100xf32>) -> (tensor<1x100xf32>) {
  %v0 = arith.constant 0.0 : f32
  %v1 = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %v0 : f32
  } : tensor<1x3x96x96xf32> to tensor<1x3x98x98xf32>
  %v2 = arith.constant 0.0 : f32
  %v3 = tensor.empty() : tensor<1x16x48x48xf32>
  %v4 = linalg.fill ins(%v2 : f32) outs(%v3 : tensor<1x16x48x48xf32>) -> tensor<1x16x48x48xf32>
  %v5 = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[2, 2]> : tensor<2xi64>} ins(%v1, %arg1 : tensor<1x3x98x98xf32>, tensor<16x3x3x3xf32>) outs(%v4 : tensor<1x16x48x48xf32>) -> tensor<1x16x48x48xf32>
  %v6 = tensor.empty() : tensor<1x16x48x48xf32>
  %v7 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v5, %arg2 : tensor<1x16x48x48xf32>, tensor<16xf32>) outs(%v6 : tensor<1x16x48x48xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %s = arith.addf %x0, %x1 : f32
    %m = arith.maximumf %s, %z : f32
      linalg.yield %m : f32
  } -> tensor<1x16x48x48xf32>
  %v8 = arith.constant 0.0 : f32
  %v9 = tensor.empty() : tensor<1x64x48x48xf32>
  %v10 = linalg.fill ins(%v8 : f32) outs(%v9 : tensor<1x64x48x48xf32>) -> tensor<1x64x48x48xf32>
  %v11 = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[1, 1]> : tensor<2xi64>} ins(%v7, %arg3 : tensor<1x16x48x48xf32>, tensor<64x16x1x1xf32>) outs(%v10 : tensor<1x64x48x48xf32>) -> tensor<1x64x48x48xf32>
  %v12 = tensor.empty() : tensor<1x64x48x48xf32>
  %v13 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v11, %arg4 : tensor<1x64x48x48xf32>, tensor<64xf32>) outs(%v12 : tensor<1x64x48x48xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %s = arith.addf %x0, %x1 : f32
    %m = arith.maximumf %s, %z : f32
      linalg.yield %m : f32
  } -> tensor<1x64x48x48xf32>
  %v14 = arith.constant 0.0 : f32
  %v15 = tensor.pad %v13 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %v14 : f32
  } : tensor<1x64x48x48xf32> to tensor<1x64x50x50xf32>
  %v16 = arith.constant 0.0 : f32
  %v17 = tensor.empty() : tensor<1x64x24x24xf32>
  %v18 = linalg.fill ins(%v16 : f32) outs(%v17 : tensor<1x64x24x24xf32>) -> tensor<1x64x24x24xf32>
  %v19 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[2, 2]> : tensor<2xi64>} ins(%v15, %arg5 : tensor<1x64x50x50xf32>, tensor<64x3x3xf32>) outs(%v18 : tensor<1x64x24x24xf32>) -> tensor<1x64x24x24xf32>
  %v20 = tensor.empty() : tensor<1x64x24x24xf32>
  %v21 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v19, %arg6 : tensor<1x64x24x24xf32>, tensor<64xf32>) outs(%v20 : tensor<1x64x24x24xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %s = arith.addf %x0, %x1 : f32
    %m = arith.maximumf %s, %z : f32
      linalg.yield %m : f32
  } -> tensor<1x64x24x24xf32>
  %v22 = arith.constant 0.0 : f32
  %v23 = tensor.empty() : tensor<1x24x24x24xf32>
  %v24 = linalg.fill ins(%v22 : f32) outs(%v23 : tensor<1x24x24x24xf32>) -> tensor<1x24x24x24xf32>
  %v25 = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[1, 1]> : tensor<2xi64>} ins(%v21, %arg7 : tensor<1x64x24x24xf32>, tensor<24x64x1x1xf32>) outs(%v24 : tensor<1x24x24x24xf32>) -> tensor<1x24x24x24xf32>
  %v26 = tensor.empty() : tensor<1x24x24x24xf32>
  %v27 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v25, %arg8 : tensor<1x24x24x24xf32>, tensor<24xf32>) outs(%v26 : tensor<1x24x24x24xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
      linalg.yield %s : f32
  } -> tensor<1x24x24x24xf32>
  %v28 = arith.constant 0.0 : f32
  %v29 = tensor.empty() : tensor<1x96x24x24xf32>
  %v30 = linalg.fill ins(%v28 : f32) outs(%v29 : tensor<1x96x24x24xf32>) -> tensor<1x96x24x24xf32>
  %v31 = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[1, 1]> : tensor<2xi64>} ins(%v27, %arg9 : tensor<1x24x24x24xf32>, tensor<96x24x1x1xf32>) outs(%v30 : tensor<1x96x24x24xf32>) -> tensor<1x96x24x24xf32>
  %v32 = tensor.empty() : tensor<1x96x24x24xf32>
  %v33 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v31, %arg10 : tensor<1x96x24x24xf32>, tensor<96xf32>) outs(%v32 : tensor<1x96x24x24xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %s = arith.addf %x0, %x1 : f32
    %m = arith.maximumf %s, %z : f32
      linalg.yield %m : f32
  } -> tensor<1x96x24x24xf32>
  %v34 = arith.constant 0.0 : f32
  %v35 = tensor.pad %v33 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %v34 : f32
  } : tensor<1x96x24x24xf32> to tensor<1x96x26x26xf32>
  %v36 = arith.constant 0.0 : f32
  %v37 = tensor.empty() : tensor<1x96x24x24xf32>
  %v38 = linalg.fill ins(%v36 : f32) outs(%v37 : tensor<1x96x24x24xf32>) -> tensor<1x96x24x24xf32>
  %v39 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[1, 1]> : tensor<2xi64>} ins(%v35, %arg11 : tensor<1x96x26x26xf32>, tensor<96x3x3xf32>) outs(%v38 : tensor<1x96x24x24xf32>) -> tensor<1x96x24x24xf32>
  %v40 = tensor.empty() : tensor<1x96x24x24xf32>
  %v41 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v39, %arg12 : tensor<1x96x24x24xf32>, tensor<96xf32>) outs(%v40 : tensor<1x96x24x24xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %s = arith.addf %x0, %x1 : f32
    %m = arith.maximumf %s, %z : f32
      linalg.yield %m : f32
  } -> tensor<1x96x24x24xf32>
  %v42 = arith.constant 0.0 : f32
  %v43 = tensor.empty() : tensor<1x24x24x24xf32>
  %v44 = linalg.fill ins(%v42 : f32) outs(%v43 : tensor<1x24x24x24xf32>) -> tensor<1x24x24x24xf32>
  %v45 = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[1, 1]> : tensor<2xi64>} ins(%v41, %arg13 : tensor<1x96x24x24xf32>, tensor<24x96x1x1xf32>) outs(%v44 : tensor<1x24x24x24xf32>) -> tensor<1x24x24x24xf32>
  %v46 = tensor.empty() : tensor<1x24x24x24xf32>
  %v47 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v45, %arg14 : tensor<1x24x24x24xf32>, tensor<24xf32>) outs(%v46 : tensor<1x24x24x24xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
      linalg.yield %s : f32
  } -> tensor<1x24x24x24xf32>
  %v48 = tensor.empty() : tensor<1x24x24x24xf32>
  %v49 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v47, %v27 : tensor<1x24x24x24xf32>, tensor<1x24x24x24xf32>) outs(%v48 : tensor<1x24x24x24xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
      linalg.yield %s : f32
  } -> tensor<1x24x24x24xf32>
  %v50 = arith.constant 0.0 : f32
  %v51 = tensor.empty() : tensor<1x96x24x24xf32>
  %v52 = linalg.fill ins(%v50 : f32) outs(%v51 : tensor<1x96x24x24xf32>) -> tensor<1x96x24x24xf32>
  %v53 = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[1, 1]> : tensor<2xi64>} ins(%v49, %arg15 : tensor<1x24x24x24xf32>, tensor<96x24x1x1xf32>) outs(%v52 : tensor<1x96x24x24xf32>) -> tensor<1x96x24x24xf32>
  %v54 = tensor.empty() : tensor<1x96x24x24xf32>
  %v55 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v53, %arg16 : tensor<1x96x24x24xf32>, tensor<96xf32>) outs(%v54 : tensor<1x96x24x24xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %s = arith.addf %x0, %x1 : f32
    %m = arith.maximumf %s, %z : f32
      linalg.yield %m : f32
  } -> tensor<1x96x24x24xf32>
  %v56 = arith.constant 0.0 : f32
  %v57 = tensor.pad %v55 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %v56 : f32
  } : tensor<1x96x24x24xf32> to tensor<1x96x26x26xf32>
  %v58 = arith.constant 0.0 : f32
  %v59 = tensor.empty() : tensor<1x96x12x12xf32>
  %v60 = linalg.fill ins(%v58 : f32) outs(%v59 : tensor<1x96x12x12xf32>) -> tensor<1x96x12x12xf32>
  %v61 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[2, 2]> : tensor<2xi64>} ins(%v57, %arg17 : tensor<1x96x26x26xf32>, tensor<96x3x3xf32>) outs(%v60 : tensor<1x96x12x12xf32>) -> tensor<1x96x12x12xf32>
  %v62 = tensor.empty() : tensor<1x96x12x12xf32>
  %v63 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v61, %arg18 : tensor<1x96x12x12xf32>, tensor<96xf32>) outs(%v62 : tensor<1x96x12x12xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %s = arith.addf %x0, %x1 : f32
    %m = arith.maximumf %s, %z : f32
      linalg.yield %m : f32
  } -> tensor<1x96x12x12xf32>
  %v64 = arith.constant 0.0 : f32
  %v65 = tensor.empty() : tensor<1x40x12x12xf32>
  %v66 = linalg.fill ins(%v64 : f32) outs(%v65 : tensor<1x40x12x12xf32>) -> tensor<1x40x12x12xf32>
  %v67 = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[1, 1]> : tensor<2xi64>} ins(%v63, %arg19 : tensor<1x96x12x12xf32>, tensor<40x96x1x1xf32>) outs(%v66 : tensor<1x40x12x12xf32>) -> tensor<1x40x12x12xf32>
  %v68 = tensor.empty() : tensor<1x40x12x12xf32>
  %v69 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v67, %arg20 : tensor<1x40x12x12xf32>, tensor<40xf32>) outs(%v68 : tensor<1x40x12x12xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
      linalg.yield %s : f32
  } -> tensor<1x40x12x12xf32>
  %v70 = arith.constant 0.0 : f32
  %v71 = tensor.empty() : tensor<1x160x12x12xf32>
  %v72 = linalg.fill ins(%v70 : f32) outs(%v71 : tensor<1x160x12x12xf32>) -> tensor<1x160x12x12xf32>
  %v73 = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[1, 1]> : tensor<2xi64>} ins(%v69, %arg21 : tensor<1x40x12x12xf32>, tensor<160x40x1x1xf32>) outs(%v72 : tensor<1x160x12x12xf32>) -> tensor<1x160x12x12xf32>
  %v74 = tensor.empty() : tensor<1x160x12x12xf32>
  %v75 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v73, %arg22 : tensor<1x160x12x12xf32>, tensor<160xf32>) outs(%v74 : tensor<1x160x12x12xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %s = arith.addf %x0, %x1 : f32
    %m = arith.maximumf %s, %z : f32
      linalg.yield %m : f32
  } -> tensor<1x160x12x12xf32>
  %v76 = arith.constant 0.0 : f32
  %v77 = tensor.pad %v75 low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
    tensor.yield %v76 : f32
  } : tensor<1x160x12x12xf32> to tensor<1x160x14x14xf32>
  %v78 = arith.constant 0.0 : f32
  %v79 = tensor.empty() : tensor<1x160x12x12xf32>
  %v80 = linalg.fill ins(%v78 : f32) outs(%v79 : tensor<1x160x12x12xf32>) -> tensor<1x160x12x12xf32>
  %v81 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[1, 1]> : tensor<2xi64>} ins(%v77, %arg23 : tensor<1x160x14x14xf32>, tensor<160x3x3xf32>) outs(%v80 : tensor<1x160x12x12xf32>) -> tensor<1x160x12x12xf32>
  %v82 = tensor.empty() : tensor<1x160x12x12xf32>
  %v83 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v81, %arg24 : tensor<1x160x12x12xf32>, tensor<160xf32>) outs(%v82 : tensor<1x160x12x12xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %s = arith.addf %x0, %x1 : f32
    %m = arith.maximumf %s, %z : f32
      linalg.yield %m : f32
  } -> tensor<1x160x12x12xf32>
  %v84 = arith.constant 0.0 : f32
  %v85 = tensor.empty() : tensor<1x40x12x12xf32>
  %v86 = linalg.fill ins(%v84 : f32) outs(%v85 : tensor<1x40x12x12xf32>) -> tensor<1x40x12x12xf32>
  %v87 = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[1, 1]> : tensor<2xi64>} ins(%v83, %arg25 : tensor<1x160x12x12xf32>, tensor<40x160x1x1xf32>) outs(%v86 : tensor<1x40x12x12xf32>) -> tensor<1x40x12x12xf32>
  %v88 = tensor.empty() : tensor<1x40x12x12xf32>
  %v89 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v87, %arg26 : tensor<1x40x12x12xf32>, tensor<40xf32>) outs(%v88 : tensor<1x40x12x12xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
      linalg.yield %s : f32
  } -> tensor<1x40x12x12xf32>
  %v90 = tensor.empty() : tensor<1x40x12x12xf32>
  %v91 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v89, %v69 : tensor<1x40x12x12xf32>, tensor<1x40x12x12xf32>) outs(%v90 : tensor<1x40x12x12xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
      linalg.yield %s : f32
  } -> tensor<1x40x12x12xf32>
  %v92 = arith.constant 0.0 : f32
  %v93 = tensor.empty() : tensor<1x160x12x12xf32>
  %v94 = linalg.fill ins(%v92 : f32) outs(%v93 : tensor<1x160x12x12xf32>) -> tensor<1x160x12x12xf32>
  %v95 = linalg.conv_2d_nchw_fchw {dilations = dense<[1, 1]> : tensor<2xi64>, strides = dense<[1, 1]> : tensor<2xi64>} ins(%v91, %arg27 : tensor<1x40x12x12xf32>, tensor<160x40x1x1xf32>) outs(%v94 : tensor<1x160x12x12xf32>) -> tensor<1x160x12x12xf32>
  %v96 = tensor.empty() : tensor<1x160x12x12xf32>
  %v97 = linalg.generic {indexing_maps = [affine_map<(n, c, h, w) -> (n, c, h, w)>, affine_map<(n, c, h, w) -> (c)>, affine_map<(n, c, h, w) -> (n, c, h, w)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%v95, %arg28 : tensor<1x160x12x12xf32>, tensor<160xf32>) outs(%v96 : tensor<1x160x12x12xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %z = arith.constant 0.0 : f32
    %s = arith.addf %x0, %x1 : f32
    %m = arith.maximumf %s, %z : f32
      linalg.yield %m : f32
  } -> tensor<1x160x12x12xf32>
  %v98 = arith.constant 0.0 : f32
  %v99 = tensor.empty() : tensor<1x160xf32>
  %v100 = linalg.fill ins(%v98 : f32) outs(%v99 : tensor<1x160xf32>) -> tensor<1x160xf32>
  %v101 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%v97 : tensor<1x160x12x12xf32>) outs(%v100 : tensor<1x160xf32>) {
    ^bb0(%x0: f32, %out: f32):
    %s = arith.addf %out, %x0 : f32
      linalg.yield %s : f32
  } -> tensor<1x160xf32>
  %v102 = arith.constant 0.0 : f32
  %v103 = tensor.empty() : tensor<1x100xf32>
  %v104 = linalg.fill ins(%v102 : f32) outs(%v103 : tensor<1x100xf32>) -> tensor<1x100xf32>
  %v105 = linalg.generic {indexing_maps = [affine_map<(n, f, k) -> (n, k)>, affine_map<(n, f, k) -> (k, f)>, affine_map<(n, f, k) -> (n, f)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%v101, %arg29 : tensor<1x160xf32>, tensor<160x100xf32>) outs(%v104 : tensor<1x100xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %p = arith.mulf %x0, %x1 : f32
    %s = arith.addf %out, %p : f32
      linalg.yield %s : f32
  } -> tensor<1x100xf32>
  return %v105 : tensor<1x100xf32>
}
