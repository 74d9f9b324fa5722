#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  util.func private @avx512bf16_4ba12f868a64(%arg0: tensor<2x4x2xbf16>, %arg1: tensor<4x16x2xbf16>, %arg2: tensor<2x16xf32>) -> tensor<2x16xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %cst = arith.constant 0.000000e+00 : bf16
    %cst_0 = arith.constant 0.000000e+00 : f32
    %c0_1 = arith.constant 0 : index
    %c1_2 = arith.constant 1 : index
    %c0_3 = arith.constant 0 : index
    %c0_4 = arith.constant 0 : index
    %extracted_slice = tensor.extract_slice %arg0[0, 0, 0] [2, 4, 2] [1, 1, 1] : tensor<2x4x2xbf16> to tensor<2x4x2xbf16>
    %extracted_slice_5 = tensor.extract_slice %arg1[0, 0, 0] [4, 16, 2] [1, 1, 1] : tensor<4x16x2xbf16> to tensor<4x16x2xbf16>
    %collapsed = tensor.collapse_shape %extracted_slice_5 [[0], [1, 2]] : tensor<4x16x2xbf16> into tensor<4x32xbf16>
    %extracted_slice_6 = tensor.extract_slice %arg2[0, 0] [2, 16] [1, 1] : tensor<2x16xf32> to tensor<2x16xf32>
    %0 = vector.transfer_read %extracted_slice_6[%c0_1, %c0_3], %cst_0 {in_bounds = [true]} : tensor<2x16xf32>, vector<16xf32>
    %1 = vector.transfer_read %extracted_slice_6[%c1_2, %c0_3], %cst_0 {in_bounds = [true]} : tensor<2x16xf32>, vector<16xf32>
    %2:2 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %0, %arg5 = %1) -> (vector<16xf32>, vector<16xf32>) {
      %5 = vector.transfer_read %collapsed[%arg3, %c0_4], %cst {in_bounds = [true]} : tensor<4x32xbf16>, vector<32xbf16>
      %6 = vector.transfer_read %extracted_slice[%c0_1, %arg3, %c0], %cst {in_bounds = [true]} : tensor<2x4x2xbf16>, vector<2xbf16>
      %7 = vector.bitcast %6 : vector<2xbf16> to vector<1xi32>
      %8 = vector.extract %7[0] : i32 from vector<1xi32>
      %9 = vector.broadcast %8 : i32 to vector<16xi32>
      %10 = vector.bitcast %9 : vector<16xi32> to vector<32xbf16>
      %11 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%arg4, %5, %10) : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
      %12 = vector.transfer_read %extracted_slice[%c1_2, %arg3, %c0], %cst {in_bounds = [true]} : tensor<2x4x2xbf16>, vector<2xbf16>
      %13 = vector.bitcast %12 : vector<2xbf16> to vector<1xi32>
      %14 = vector.extract %13[0] : i32 from vector<1xi32>
      %15 = vector.broadcast %14 : i32 to vector<16xi32>
      %16 = vector.bitcast %15 : vector<16xi32> to vector<32xbf16>
      %17 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%arg5, %5, %16) : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
      scf.yield %11, %17 : vector<16xf32>, vector<16xf32>
    }
    %3 = vector.transfer_write %2#0, %extracted_slice_6[%c0_1, %c0_3] {in_bounds = [true]} : vector<16xf32>, tensor<2x16xf32>
    %4 = vector.transfer_write %2#1, %3[%c1_2, %c0_3] {in_bounds = [true]} : vector<16xf32>, tensor<2x16xf32>
    %inserted_slice = tensor.insert_slice %4 into %arg2[0, 0] [2, 16] [1, 1] : tensor<2x16xf32> into tensor<2x16xf32>
    util.return %inserted_slice : tensor<2x16xf32>
  }
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "dot_product"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %workgroup_0_0 = transform.param.constant 16 : i64 {mlir_sched.distribution = {extent = 16 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_0"} -> !transform.param<i64>
    %workgroup_1_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 32 : i64, kind = "perfect_tile", levels = 1 : i64, multiple_of = 16 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_1"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#1 tile_sizes [%workgroup_0_0, %workgroup_1_0, 0](mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#0 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %columns_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 32 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 128 : i64, multiple_of = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %columns_1 = transform.param.constant 16 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %rows_0 = transform.param.constant 2 : i64 {mlir_sched.distribution = {extent = 16 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "rows"} -> !transform.param<i64>
    %reduction_0 = transform.param.constant 8 : i64 {mlir_sched.distribution = {extent = 24 : i64, kind = "perfect_tile", levels = 1 : i64, multiple_of = 2 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "reduction"} -> !transform.param<i64>
    %register_order = transform.param.constant ["rows", "columns"] {mlir_sched.distribution = {items = ["rows", "columns"], kind = "permutation"}, mlir_sched.name = "register_order"} -> !transform.any_param
    %fused_2, %fused_3 = transform.structured.fuse %tiled tile_sizes [0, %columns_0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %ops_4 = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %tiled_5, %tiled_6:2 = transform.structured.tile_using_for %ops_4 tile_sizes [1, %columns_1] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %ops_7 = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_7 : !transform.any_op
    %tiled_8, %tiled_9 = transform.structured.tile_using_for %ops tile_sizes [0, 0, %reduction_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %packed = transform.structured.pack %tiled_8 packed_sizes = [0, 0, 2] : (!transform.any_op) -> !transform.op<"linalg.generic">
    %packed_10 = transform.cast %packed : !transform.op<"linalg.generic"> to !transform.any_op
    %ops_11 = transform.structured.match ops{["linalg.pack"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %pack = transform.cast %ops_11 : !transform.any_op to !transform.op<"linalg.pack">
    %lowered, %lowered_12, %lowered_13 = transform.structured.lower_pack %pack : (!transform.op<"linalg.pack">) -> (!transform.op<"tensor.pad">, !transform.op<"tensor.expand_shape">, !transform.op<"linalg.transpose">)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops_14 = transform.structured.match ops{["linalg.transpose"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %tiled_15, %tiled_16:2 = transform.structured.tile_using_for %ops_14 tile_sizes [1, 16] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_15 : !transform.any_op
    %tiled_17, %tiled_18 = transform.structured.tile_using_for %packed_10 tile_sizes [%rows_0, 0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_19, %tiled_20 = transform.structured.tile_using_for %tiled_17 tile_sizes [0, %columns_1, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops_21 = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %body = transform.util.lookup_nearest_symbol_from_self @avx512bf16_4ba12f868a64 : !transform.any_op
    %operands = transform.get_operand %ops_21[all] : (!transform.any_op) -> !transform.any_value
    %result = transform.get_result %ops_21[all] : (!transform.any_op) -> !transform.any_value
    transform.util.cast_and_call inline_call %body(%operands) -> %result after %ops_21 : (!transform.any_op, !transform.any_value, !transform.any_value, !transform.any_op) -> ()
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.tensor.fold_tensor_subset_ops_into_vector_transfers
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %function = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %arg0 : (!transform.any_op) -> !transform.any_op
    transform.iree.eliminate_empty_tensors %function : (!transform.any_op) -> ()
    %function_22 = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %function : (!transform.any_op) -> !transform.any_op
    %function_23 = transform.apply_registered_pass "iree-codegen-remove-single-iteration-loop" to %function_22 : (!transform.any_op) -> !transform.any_op
    %function_24 = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %function_23 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_24 "translation_info" = %value : !transform.any_op, !transform.any_param
    %value_25 = transform.param.constant "62712a295be39457" -> !transform.any_param
    transform.annotate %function_24 "mlir_sched.applied" = %value_25 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

