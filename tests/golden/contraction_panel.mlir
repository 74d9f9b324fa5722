#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "contraction.registers"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %workgroup_0_0 = transform.param.constant 1 : i64 {mlir_sched.distribution = {extent = 3 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_0"} -> !transform.param<i64>
    %workgroup_1_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 32 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_1"} -> !transform.param<i64>
    %workgroup_2_0 = transform.param.constant 48 : i64 {mlir_sched.distribution = {extent = 48 : i64, kind = "perfect_tile", levels = 1 : i64, multiple_of = 16 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_2"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#1 tile_sizes [%workgroup_0_0, %workgroup_1_0, %workgroup_2_0, 0](mapping = [#iree_codegen.workgroup_mapping<z>, #iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#0 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tail = transform.param.constant "divisor" {mlir_sched.distribution = {choice_weights = [8.000000e+00, 4.000000e+00], choices = ["divisor", "peel"], kind = "categorical"}, mlir_sched.name = "tail"} -> !transform.any_param
    %columns_0 = transform.param.constant 48 : i64 {mlir_sched.distribution = {extent = 48 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 64 : i64, multiple_of = 16 : i64, power_of_two = true, size_powers = [5.000000e-01, 0.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %columns_1 = transform.param.constant 16 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %rows_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 32 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 24 : i64, size_powers = [5.000000e-01, 1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "rows"} -> !transform.param<i64>
    %rows_1 = transform.param.constant 16 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "rows"} -> !transform.param<i64>
    %cache_order = transform.param.constant ["columns", "rows"] {mlir_sched.distribution = {items = ["rows", "columns"], kind = "permutation", still = ["rows", "columns"]}, mlir_sched.name = "cache_order"} -> !transform.any_param
    %register_order = transform.param.constant ["columns", "rows"] {mlir_sched.distribution = {items = ["rows", "columns"], kind = "permutation"}, mlir_sched.name = "register_order"} -> !transform.any_param
    %reduction_step_0 = transform.param.constant 16 : i64 {mlir_sched.distribution = {extent = 64 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64, size_powers = [1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "reduction_step"} -> !transform.param<i64>
    %columns_operand = transform.param.constant "panel" {mlir_sched.distribution = {choice_weights = [1.000000e+00, 4.000000e+00], choices = ["in_place", "panel"], kind = "categorical"}, mlir_sched.name = "columns_operand"} -> !transform.any_param
    %fused_2, %fused_3 = transform.structured.fuse %tiled tile_sizes [1, 0, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_4, %fused_5 = transform.structured.fuse %fused_2 tile_sizes [0, 0, %columns_0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_6, %fused_7 = transform.structured.fuse %fused_4 tile_sizes [0, %rows_0, 0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_8, %fused_9 = transform.structured.fuse %fused_6 tile_sizes [0, 0, %columns_1, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_10, %fused_11 = transform.structured.fuse %fused_8 tile_sizes [0, %rows_1, 0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %tiled_12, %tiled_13 = transform.structured.tile_using_for %ops tile_sizes [0, 0, 0, %reduction_step_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %padded, %padded_14, %padded_15 = transform.structured.pad %tiled_12 <padding_values = [0.000000e+00 : f32, 0.000000e+00 : f32, 0.000000e+00 : f32], padding_dimensions = [0, 1, 2, 3], nofold_flags = [0, 1, 0], copy_back_op = "none"> : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %copy = transform.get_producer_of_operand %padded[1] : (!transform.any_op) -> !transform.any_op
    %copy_16 = transform.cast %copy : !transform.any_op to !transform.op<"tensor.pad">
    %copy_17 = transform.structured.hoist_pad %copy_16 by 2 loops, transpose by [0, 2, 1] : (!transform.op<"tensor.pad">) -> !transform.any_op
    transform.structured.vectorize %padded : !transform.any_op
    %ops_18 = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_18 : !transform.any_op
    %ops_19 = transform.structured.match ops{["linalg.transpose"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_19 : !transform.any_op
    %ops_20 = transform.structured.match ops{["tensor.pad"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_20 vector_sizes [1, %columns_1, %reduction_step_0] : !transform.any_op, !transform.param<i64>, !transform.param<i64>
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
    %function_21 = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %function : (!transform.any_op) -> !transform.any_op
    %function_22 = transform.apply_registered_pass "iree-codegen-remove-single-iteration-loop" to %function_21 : (!transform.any_op) -> !transform.any_op
    %function_23 = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %function_22 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_23 "translation_info" = %value : !transform.any_op, !transform.any_param
    %value_24 = transform.param.constant "31fcccaa49b3a48e" -> !transform.any_param
    transform.annotate %function_23 "mlir_sched.applied" = %value_24 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

