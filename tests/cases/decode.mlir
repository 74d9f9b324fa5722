// The end of a decode step: logits with the place of the largest, and a product with the weights of the expert that a
// token is sent to.
#mk = affine_map<(n, k) -> (k)>
#nk = affine_map<(n, k) -> (n, k)>
#n = affine_map<(n, k) -> (n)>
func.func @token(%h: tensor<256xf32>, %w: tensor<2000x256xf32>) -> (tensor<2000xf32>, tensor<i64>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  %e = tensor.empty() : tensor<2000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2000xf32>) -> tensor<2000xf32>
  %logits = linalg.matvec ins(%w, %h : tensor<2000x256xf32>, tensor<256xf32>) outs(%f : tensor<2000xf32>) -> tensor<2000xf32>
  %ev = tensor.empty() : tensor<f32>
  %ei = tensor.empty() : tensor<i64>
  %v = linalg.fill ins(%low : f32) outs(%ev : tensor<f32>) -> tensor<f32>
  %i = linalg.fill ins(%none : i64) outs(%ei : tensor<i64>) -> tensor<i64>
  %best:2 = linalg.generic {indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> ()>, affine_map<(d) -> ()>], iterator_types = ["reduction"]}
    ins(%logits : tensor<2000xf32>) outs(%v, %i : tensor<f32>, tensor<i64>) {
  ^bb0(%a: f32, %most: f32, %place: i64):
    %at = linalg.index 0 : index
    %here = arith.index_cast %at : index to i64
    %more = arith.cmpf ogt, %a, %most : f32
    %value = arith.select %more, %a, %most : f32
    %where = arith.select %more, %here, %place : i64
    linalg.yield %value, %where : f32, i64
  } -> (tensor<f32>, tensor<i64>)
  return %logits, %best#1 : tensor<2000xf32>, tensor<i64>
}

func.func @expert(%h: tensor<256xf32>, %w: tensor<8x512x256xf32>, %chosen: tensor<2xi32>) -> tensor<2x512xf32> {
  %zero = arith.constant 0.0 : f32
  %eg = tensor.empty() : tensor<2x512x256xf32>
  %weights = linalg.generic {indexing_maps = [affine_map<(e, n, k) -> (e)>, affine_map<(e, n, k) -> (e, n, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%chosen : tensor<2xi32>) outs(%eg : tensor<2x512x256xf32>) {
  ^bb0(%c: i32, %o: f32):
    %x = arith.index_cast %c : i32 to index
    %n = linalg.index 1 : index
    %k = linalg.index 2 : index
    %r = tensor.extract %w[%x, %n, %k] : tensor<8x512x256xf32>
    linalg.yield %r : f32
  } -> tensor<2x512x256xf32>
  %e = tensor.empty() : tensor<2x512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x512xf32>) -> tensor<2x512xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(e, n, k) -> (e, n, k)>, affine_map<(e, n, k) -> (k)>, affine_map<(e, n, k) -> (e, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%weights, %h : tensor<2x512x256xf32>, tensor<256xf32>) outs(%f : tensor<2x512xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %m = arith.mulf %a, %b : f32
    %r = arith.addf %m, %sum : f32
    linalg.yield %r : f32
  } -> tensor<2x512xf32>
  return %y : tensor<2x512xf32>
}
