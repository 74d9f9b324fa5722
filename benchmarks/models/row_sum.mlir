// The sum of every row of a 1024x1024 matrix, f32.
func.func @row_sum(%matrix: tensor<1024x1024xf32>) -> tensor<1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1024xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<1024xf32>) -> tensor<1024xf32>
  %sums = linalg.reduce ins(%matrix : tensor<1024x1024xf32>) outs(%init : tensor<1024xf32>) dimensions = [1]
      (%value: f32, %sum: f32) {
        %next = arith.addf %value, %sum : f32
        linalg.yield %next : f32
      }
  return %sums : tensor<1024xf32>
}
