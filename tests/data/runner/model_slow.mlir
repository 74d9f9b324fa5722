// A whole program: adds each element to itself so often, one addition after the other, that a call takes over 0.1 s.
func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %empty = tensor.empty() : tensor<1000xf32>
  %sums = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
    } ins(%x : tensor<1000xf32>) outs(%empty : tensor<1000xf32>) {
  ^bb0(%value: f32, %unused: f32):
    %zero = arith.constant 0.0 : f32
    %first = arith.constant 0 : index
    %end = arith.constant 400000 : index
    %step = arith.constant 1 : index
    %sum = scf.for %number = %first to %end step %step iter_args(%so_far = %zero) -> f32 {
      %next = arith.addf %so_far, %value : f32
      scf.yield %next : f32
    }
    linalg.yield %sum : f32
  } -> tensor<1000xf32>
  return %sums : tensor<1000xf32>
}
