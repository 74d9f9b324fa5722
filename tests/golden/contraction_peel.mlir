#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "contraction.registers"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %workgroup_0_0 = transform.param.constant 17 : i64 {mlir_sched.distribution = {extent = 17 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_0"} -> !transform.param<i64>
    %workgroup_1_0 = transform.param.constant 33 : i64 {mlir_sched.distribution = {extent = 33 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_1"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#1 tile_sizes [%workgroup_0_0, %workgroup_1_0, 0](mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#0 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tail = transform.param.constant "peel" {mlir_sched.distribution = {choice_weights = [1.000000e+00, 4.000000e+00, 5.000000e-01], choices = ["divisor", "peel", "mask"], kind = "categorical"}, mlir_sched.name = "tail"} -> !transform.any_param
    %columns_0 = transform.param.constant 33 : i64 {mlir_sched.distribution = {extent = 33 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %register_columns = transform.param.constant 16 : i64 {mlir_sched.distribution = {choices = [16, 32], kind = "categorical"}, mlir_sched.name = "register_columns"} -> !transform.param<i64>
    %rows_0 = transform.param.constant 17 : i64 {mlir_sched.distribution = {extent = 17 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "rows"} -> !transform.param<i64>
    %register_rows = transform.param.constant 8 : i64 {mlir_sched.distribution = {choice_weights = [1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01, 1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01, 1.600000e+01, 1.700000e+01], choices = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17], kind = "categorical"}, mlir_sched.name = "register_rows"} -> !transform.param<i64>
    %cache_order = transform.param.constant ["rows", "columns"] {mlir_sched.distribution = {items = ["rows", "columns"], kind = "permutation", still = ["rows", "columns"]}, mlir_sched.name = "cache_order"} -> !transform.any_param
    %register_order = transform.param.constant ["rows", "columns"] {mlir_sched.distribution = {items = ["rows", "columns"], kind = "permutation"}, mlir_sched.name = "register_order"} -> !transform.any_param
    %reduction_step_0 = transform.param.constant 1 : i64 {mlir_sched.distribution = {extent = 65 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64, size_powers = [0.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "reduction_step"} -> !transform.param<i64>
    %fused_2, %fused_3 = transform.structured.fuse %tiled tile_sizes [%rows_0, 0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_4, %fused_5 = transform.structured.fuse %fused_2 tile_sizes [0, %columns_0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_6, %fused_7 = transform.structured.fuse %fused_4 tile_sizes [%register_rows, 0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_8, %fused_9 = transform.structured.fuse %fused_6 tile_sizes [0, %register_columns, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.matmul"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %tiled_10, %tiled_11 = transform.structured.tile_using_for %ops tile_sizes [0, 0, %reduction_step_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %loop = transform.cast %fused_9 : !transform.any_op to !transform.op<"scf.for">
    %loop_12, %loop_13 = transform.loop.peel %loop : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    %loop_14 = transform.cast %fused_7 : !transform.any_op to !transform.op<"scf.for">
    %loop_15, %loop_16 = transform.loop.peel %loop_14 : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops_17 = transform.structured.match ops{["linalg.fill", "linalg.matmul"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_17 : !transform.any_op
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.vector.reduction_to_contract
      transform.apply_patterns.vector.transfer_permutation_patterns
      transform.apply_patterns.vector.sink_ops
    } : !transform.any_op
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
    %function_18 = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %function : (!transform.any_op) -> !transform.any_op
    %function_19 = transform.apply_registered_pass "iree-codegen-remove-single-iteration-loop" to %function_18 : (!transform.any_op) -> !transform.any_op
    %function_20 = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %function_19 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_20 "translation_info" = %value : !transform.any_op, !transform.any_param
    %value_21 = transform.param.constant "387d56a61e983002" -> !transform.any_param
    transform.annotate %function_20 "mlir_sched.applied" = %value_21 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

