func.func @relu(%a: tensor<64x96xf16>, %b: tensor<96x80xf16>, %c: tensor<80xf16>) -> tensor<64x80xf16> {
  %z = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<64x80xf16>
  %f = linalg.fill ins(%z : f16) outs(%e : tensor<64x80xf16>) -> tensor<64x80xf16>
  %p = linalg.matmul ins(%a, %b : tensor<64x96xf16>, tensor<96x80xf16>) outs(%f : tensor<64x80xf16>) -> tensor<64x80xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i,j)->(i,j)>,affine_map<(i,j)->(j)>,affine_map<(i,j)->(i,j)>], iterator_types=["parallel","parallel"]} ins(%p,%c: tensor<64x80xf16>,tensor<80xf16>) outs(%e: tensor<64x80xf16>) {
  ^bb0(%x: f16, %y: f16, %o: f16):
    %s = arith.addf %x, %y : f16
    %m = arith.maximumf %s, %z : f16
    linalg.yield %m : f16
  } -> tensor<64x80xf16>
  return %r : tensor<64x80xf16>
}
func.func @largest(%x: tensor<15x9x8xf16>) -> tensor<15x9x8xf16> {
  %e = tensor.empty() : tensor<15x9x8xf16>
  %s = linalg.softmax dimension(1) ins(%x : tensor<15x9x8xf16>) outs(%e : tensor<15x9x8xf16>) -> tensor<15x9x8xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%s, %x : tensor<15x9x8xf16>, tensor<15x9x8xf16>) outs(%e : tensor<15x9x8xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %m = arith.maximumf %a, %b : f16
    linalg.yield %m : f16
  } -> tensor<15x9x8xf16>
  return %r : tensor<15x9x8xf16>
}
