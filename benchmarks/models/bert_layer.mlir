// BERT-base's layer: 128 tokens of 768 features, twelve heads, a feed-forward part of 3072, layer normalisation first; f32.
func.func @main(%arg0: tensor<128x768xf32>, %arg1: tensor<768x12x64xf32>, %arg2: tensor<768x12x64xf32>, %arg3: tensor<768x12x64xf32>, %arg4: tensor<12x64x768xf32>, %arg5: tensor<768x3072xf32>, %arg6: tensor<3072xf32>, %arg7: tensor<3072x768xf32>) -> (tensor<128x768xf32>) {
  %v0 = arith.constant 0.0 : f32
  %v1 = tensor.empty() : tensor<128xf32>
  %v2 = linalg.fill ins(%v0 : f32) outs(%v1 : tensor<128xf32>) -> tensor<128xf32>
  %v3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%arg0 : tensor<128x768xf32>) outs(%v2 : tensor<128xf32>) {
    ^bb0(%x0: f32, %out: f32):
    %s = arith.addf %out, %x0 : f32
      linalg.yield %s : f32
  } -> tensor<128xf32>
  %v4 = tensor.empty() : tensor<128x768xf32>
  %v5 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%arg0, %v3 : tensor<128x768xf32>, tensor<128xf32>) outs(%v4 : tensor<128x768xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %k = arith.constant 0.0013020833333333333 : f32
    %mu = arith.mulf %x1, %k : f32
    %y = arith.subf %x0, %mu : f32
      linalg.yield %y : f32
  } -> tensor<128x768xf32>
  %v6 = tensor.empty() : tensor<128x768xf32>
  %v7 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%v5 : tensor<128x768xf32>) outs(%v6 : tensor<128x768xf32>) {
    ^bb0(%x0: f32, %out: f32):
    %y = arith.mulf %x0, %x0 : f32
      linalg.yield %y : f32
  } -> tensor<128x768xf32>
  %v8 = arith.constant 0.0 : f32
  %v9 = tensor.empty() : tensor<128xf32>
  %v10 = linalg.fill ins(%v8 : f32) outs(%v9 : tensor<128xf32>) -> tensor<128xf32>
  %v11 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%v7 : tensor<128x768xf32>) outs(%v10 : tensor<128xf32>) {
    ^bb0(%x0: f32, %out: f32):
    %s = arith.addf %out, %x0 : f32
      linalg.yield %s : f32
  } -> tensor<128xf32>
  %v12 = tensor.empty() : tensor<128x768xf32>
  %v13 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%v5, %v11 : tensor<128x768xf32>, tensor<128xf32>) outs(%v12 : tensor<128x768xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %k = arith.constant 0.0013020833333333333 : f32
    %a = arith.mulf %x1, %k : f32
    %e = arith.constant 1.0e-05 : f32
    %b = arith.addf %a, %e : f32
    %r = math.rsqrt %b : f32
    %y = arith.mulf %x0, %r : f32
      linalg.yield %y : f32
  } -> tensor<128x768xf32>
  %v14 = arith.constant 0.0 : f32
  %v15 = tensor.empty() : tensor<12x128x64xf32>
  %v16 = linalg.fill ins(%v14 : f32) outs(%v15 : tensor<12x128x64xf32>) -> tensor<12x128x64xf32>
  %v17 = linalg.generic {indexing_maps = [affine_map<(h, t, e, d) -> (t, d)>, affine_map<(h, t, e, d) -> (d, h, e)>, affine_map<(h, t, e, d) -> (h, t, e)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%v13, %arg1 : tensor<128x768xf32>, tensor<768x12x64xf32>) outs(%v16 : tensor<12x128x64xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %p = arith.mulf %x0, %x1 : f32
    %s = arith.addf %out, %p : f32
      linalg.yield %s : f32
  } -> tensor<12x128x64xf32>
  %v18 = arith.constant 0.0 : f32
  %v19 = tensor.empty() : tensor<12x128x64xf32>
  %v20 = linalg.fill ins(%v18 : f32) outs(%v19 : tensor<12x128x64xf32>) -> tensor<12x128x64xf32>
  %v21 = linalg.generic {indexing_maps = [affine_map<(h, t, e, d) -> (t, d)>, affine_map<(h, t, e, d) -> (d, h, e)>, affine_map<(h, t, e, d) -> (h, t, e)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%v13, %arg2 : tensor<128x768xf32>, tensor<768x12x64xf32>) outs(%v20 : tensor<12x128x64xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %p = arith.mulf %x0, %x1 : f32
    %s = arith.addf %out, %p : f32
      linalg.yield %s : f32
  } -> tensor<12x128x64xf32>
  %v22 = arith.constant 0.0 : f32
  %v23 = tensor.empty() : tensor<12x128x64xf32>
  %v24 = linalg.fill ins(%v22 : f32) outs(%v23 : tensor<12x128x64xf32>) -> tensor<12x128x64xf32>
  %v25 = linalg.generic {indexing_maps = [affine_map<(h, t, e, d) -> (t, d)>, affine_map<(h, t, e, d) -> (d, h, e)>, affine_map<(h, t, e, d) -> (h, t, e)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%v13, %arg3 : tensor<128x768xf32>, tensor<768x12x64xf32>) outs(%v24 : tensor<12x128x64xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %p = arith.mulf %x0, %x1 : f32
    %s = arith.addf %out, %p : f32
      linalg.yield %s : f32
  } -> tensor<12x128x64xf32>
  %v26 = arith.constant 0.0 : f32
  %v27 = tensor.empty() : tensor<12x128x128xf32>
  %v28 = linalg.fill ins(%v26 : f32) outs(%v27 : tensor<12x128x128xf32>) -> tensor<12x128x128xf32>
  %v29 = linalg.generic {indexing_maps = [affine_map<(h, t, u, e) -> (h, t, e)>, affine_map<(h, t, u, e) -> (h, u, e)>, affine_map<(h, t, u, e) -> (h, t, u)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%v17, %v21 : tensor<12x128x64xf32>, tensor<12x128x64xf32>) outs(%v28 : tensor<12x128x128xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %p = arith.mulf %x0, %x1 : f32
    %s = arith.addf %out, %p : f32
      linalg.yield %s : f32
  } -> tensor<12x128x128xf32>
  %v30 = tensor.empty() : tensor<12x128x128xf32>
  %v31 = linalg.generic {indexing_maps = [affine_map<(h, t, u) -> (h, t, u)>, affine_map<(h, t, u) -> (h, t, u)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%v29 : tensor<12x128x128xf32>) outs(%v30 : tensor<12x128x128xf32>) {
    ^bb0(%x0: f32, %out: f32):
    %k = arith.constant 0.125 : f32
    %y = arith.mulf %x0, %k : f32
      linalg.yield %y : f32
  } -> tensor<12x128x128xf32>
  %v32 = tensor.empty() : tensor<12x128x128xf32>
  %v33 = linalg.softmax dimension(2) ins(%v31 : tensor<12x128x128xf32>) outs(%v32 : tensor<12x128x128xf32>) -> tensor<12x128x128xf32>
  %v34 = arith.constant 0.0 : f32
  %v35 = tensor.empty() : tensor<128x12x64xf32>
  %v36 = linalg.fill ins(%v34 : f32) outs(%v35 : tensor<128x12x64xf32>) -> tensor<128x12x64xf32>
  %v37 = linalg.generic {indexing_maps = [affine_map<(t, h, e, u) -> (h, t, u)>, affine_map<(t, h, e, u) -> (h, u, e)>, affine_map<(t, h, e, u) -> (t, h, e)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%v33, %v25 : tensor<12x128x128xf32>, tensor<12x128x64xf32>) outs(%v36 : tensor<128x12x64xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %p = arith.mulf %x0, %x1 : f32
    %s = arith.addf %out, %p : f32
      linalg.yield %s : f32
  } -> tensor<128x12x64xf32>
  %v38 = arith.constant 0.0 : f32
  %v39 = tensor.empty() : tensor<128x768xf32>
  %v40 = linalg.fill ins(%v38 : f32) outs(%v39 : tensor<128x768xf32>) -> tensor<128x768xf32>
  %v41 = linalg.generic {indexing_maps = [affine_map<(t, d, h, e) -> (t, h, e)>, affine_map<(t, d, h, e) -> (h, e, d)>, affine_map<(t, d, h, e) -> (t, d)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%v37, %arg4 : tensor<128x12x64xf32>, tensor<12x64x768xf32>) outs(%v40 : tensor<128x768xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %p = arith.mulf %x0, %x1 : f32
    %s = arith.addf %out, %p : f32
      linalg.yield %s : f32
  } -> tensor<128x768xf32>
  %v42 = tensor.empty() : tensor<128x768xf32>
  %v43 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%v41, %arg0 : tensor<128x768xf32>, tensor<128x768xf32>) outs(%v42 : tensor<128x768xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
      linalg.yield %s : f32
  } -> tensor<128x768xf32>
  %v44 = arith.constant 0.0 : f32
  %v45 = tensor.empty() : tensor<128xf32>
  %v46 = linalg.fill ins(%v44 : f32) outs(%v45 : tensor<128xf32>) -> tensor<128xf32>
  %v47 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%v43 : tensor<128x768xf32>) outs(%v46 : tensor<128xf32>) {
    ^bb0(%x0: f32, %out: f32):
    %s = arith.addf %out, %x0 : f32
      linalg.yield %s : f32
  } -> tensor<128xf32>
  %v48 = tensor.empty() : tensor<128x768xf32>
  %v49 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%v43, %v47 : tensor<128x768xf32>, tensor<128xf32>) outs(%v48 : tensor<128x768xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %k = arith.constant 0.0013020833333333333 : f32
    %mu = arith.mulf %x1, %k : f32
    %y = arith.subf %x0, %mu : f32
      linalg.yield %y : f32
  } -> tensor<128x768xf32>
  %v50 = tensor.empty() : tensor<128x768xf32>
  %v51 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%v49 : tensor<128x768xf32>) outs(%v50 : tensor<128x768xf32>) {
    ^bb0(%x0: f32, %out: f32):
    %y = arith.mulf %x0, %x0 : f32
      linalg.yield %y : f32
  } -> tensor<128x768xf32>
  %v52 = arith.constant 0.0 : f32
  %v53 = tensor.empty() : tensor<128xf32>
  %v54 = linalg.fill ins(%v52 : f32) outs(%v53 : tensor<128xf32>) -> tensor<128xf32>
  %v55 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%v51 : tensor<128x768xf32>) outs(%v54 : tensor<128xf32>) {
    ^bb0(%x0: f32, %out: f32):
    %s = arith.addf %out, %x0 : f32
      linalg.yield %s : f32
  } -> tensor<128xf32>
  %v56 = tensor.empty() : tensor<128x768xf32>
  %v57 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%v49, %v55 : tensor<128x768xf32>, tensor<128xf32>) outs(%v56 : tensor<128x768xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %k = arith.constant 0.0013020833333333333 : f32
    %a = arith.mulf %x1, %k : f32
    %e = arith.constant 1.0e-05 : f32
    %b = arith.addf %a, %e : f32
    %r = math.rsqrt %b : f32
    %y = arith.mulf %x0, %r : f32
      linalg.yield %y : f32
  } -> tensor<128x768xf32>
  %v58 = arith.constant 0.0 : f32
  %v59 = tensor.empty() : tensor<128x3072xf32>
  %v60 = linalg.fill ins(%v58 : f32) outs(%v59 : tensor<128x3072xf32>) -> tensor<128x3072xf32>
  %v61 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%v57, %arg5 : tensor<128x768xf32>, tensor<768x3072xf32>) outs(%v60 : tensor<128x3072xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %p = arith.mulf %x0, %x1 : f32
    %s = arith.addf %out, %p : f32
      linalg.yield %s : f32
  } -> tensor<128x3072xf32>
  %v62 = tensor.empty() : tensor<128x3072xf32>
  %v63 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%v61, %arg6 : tensor<128x3072xf32>, tensor<3072xf32>) outs(%v62 : tensor<128x3072xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
    %a = arith.constant 0.7978845608 : f32
    %c = arith.constant 0.044715 : f32
    %d = arith.mulf %s, %s : f32
    %e = arith.mulf %d, %s : f32
    %f = arith.mulf %e, %c : f32
    %g = arith.addf %s, %f : f32
    %h = arith.mulf %g, %a : f32
    %t = math.tanh %h : f32
    %o = arith.constant 1.0 : f32
    %u = arith.addf %t, %o : f32
    %w = arith.mulf %u, %s : f32
    %l = arith.constant 0.5 : f32
    %y = arith.mulf %w, %l : f32
      linalg.yield %y : f32
  } -> tensor<128x3072xf32>
  %v64 = arith.constant 0.0 : f32
  %v65 = tensor.empty() : tensor<128x768xf32>
  %v66 = linalg.fill ins(%v64 : f32) outs(%v65 : tensor<128x768xf32>) -> tensor<128x768xf32>
  %v67 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%v63, %arg7 : tensor<128x3072xf32>, tensor<3072x768xf32>) outs(%v66 : tensor<128x768xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %p = arith.mulf %x0, %x1 : f32
    %s = arith.addf %out, %p : f32
      linalg.yield %s : f32
  } -> tensor<128x768xf32>
  %v68 = tensor.empty() : tensor<128x768xf32>
  %v69 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%v67, %v43 : tensor<128x768xf32>, tensor<128x768xf32>) outs(%v68 : tensor<128x768xf32>) {
    ^bb0(%x0: f32, %x1: f32, %out: f32):
    %s = arith.addf %x0, %x1 : f32
      linalg.yield %s : f32
  } -> tensor<128x768xf32>
  return %v69 : tensor<128x768xf32>
}
