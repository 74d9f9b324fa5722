#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "contraction.cache"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %workgroup_0_0 = transform.param.constant 64 : i64 {mlir_sched.distribution = {extent = 64 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_0"} -> !transform.param<i64>
    %workgroup_1_0 = transform.param.constant 48 : i64 {mlir_sched.distribution = {extent = 48 : i64, kind = "perfect_tile", levels = 1 : i64, multiple_of = 16 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_1"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#1 tile_sizes [%workgroup_0_0, %workgroup_1_0, 0](mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#0 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tail = transform.param.constant "divisor" {mlir_sched.distribution = {choice_weights = [8.000000e+00, 4.000000e+00], choices = ["divisor", "peel"], kind = "categorical"}, mlir_sched.name = "tail"} -> !transform.any_param
    %columns_0 = transform.param.constant 48 : i64 {mlir_sched.distribution = {extent = 48 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 64 : i64, multiple_of = 16 : i64, power_of_two = true, size_powers = [5.000000e-01, 0.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %columns_1 = transform.param.constant 16 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %rows_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 64 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 24 : i64, size_powers = [5.000000e-01, 1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "rows"} -> !transform.param<i64>
    %rows_1 = transform.param.constant 8 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "rows"} -> !transform.param<i64>
    %reduction_0 = transform.param.constant 40 : i64 {mlir_sched.distribution = {extent = 80 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, size_powers = [5.000000e-01, 0.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "reduction"} -> !transform.param<i64>
    %reduction_1 = transform.param.constant 4 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "reduction"} -> !transform.param<i64>
    %cache_order = transform.param.constant ["reduction", "rows", "columns"] {mlir_sched.distribution = {items = ["reduction", "rows", "columns"], kind = "permutation", still = ["columns"]}, mlir_sched.name = "cache_order"} -> !transform.any_param
    %register_order = transform.param.constant ["rows", "columns"] {mlir_sched.distribution = {items = ["rows", "columns"], kind = "permutation"}, mlir_sched.name = "register_order"} -> !transform.any_param
    %tiled_2, %tiled_3 = transform.structured.tile_using_for %tiled tile_sizes [0, 0, %reduction_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_4, %tiled_5 = transform.structured.tile_using_for %tiled_2 tile_sizes [%rows_0, 0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_6, %tiled_7 = transform.structured.tile_using_for %tiled_4 tile_sizes [0, %columns_0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_8, %tiled_9 = transform.structured.tile_using_for %tiled_6 tile_sizes [%rows_1, 0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_10, %tiled_11 = transform.structured.tile_using_for %tiled_8 tile_sizes [0, %columns_1, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_12, %tiled_13 = transform.structured.tile_using_for %tiled_10 tile_sizes [0, 0, %reduction_1] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_14, %tiled_15:2 = transform.structured.tile_using_for %fused tile_sizes [%rows_1, %columns_1] : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_12 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops : !transform.any_op
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
    %function_16 = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %function : (!transform.any_op) -> !transform.any_op
    %function_17 = transform.apply_registered_pass "iree-codegen-remove-single-iteration-loop" to %function_16 : (!transform.any_op) -> !transform.any_op
    %function_18 = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %function_17 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_18 "translation_info" = %value : !transform.any_op, !transform.any_param
    %value_19 = transform.param.constant "53f2119fa63a5ba6" -> !transform.any_param
    transform.annotate %function_18 "mlir_sched.applied" = %value_19 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

