#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "contraction.registers"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:3 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %workgroup_0_0 = transform.param.constant 29 : i64 {mlir_sched.distribution = {extent = 29 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_0"} -> !transform.param<i64>
    %workgroup_1_0 = transform.param.constant 52 : i64 {mlir_sched.distribution = {extent = 52 : i64, kind = "perfect_tile", levels = 1 : i64, multiple_of = 4 : i64, size_powers = [1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_1"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#2 tile_sizes [%workgroup_0_0, %workgroup_1_0](mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#1 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_2, %fused_3 = transform.structured.fuse_into_containing_op %op#0 into %fused_1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tail = transform.param.constant "peel" {mlir_sched.distribution = {choice_weights = [1.000000e+00, 4.000000e+00, 5.000000e-01], choices = ["divisor", "peel", "mask"], kind = "categorical"}, mlir_sched.name = "tail"} -> !transform.any_param
    %columns_0 = transform.param.constant 52 : i64 {mlir_sched.distribution = {extent = 52 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %register_columns = transform.param.constant 16 : i64 {mlir_sched.distribution = {choices = [16, 32], kind = "categorical"}, mlir_sched.name = "register_columns"} -> !transform.param<i64>
    %rows_0 = transform.param.constant 29 : i64 {mlir_sched.distribution = {extent = 29 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "rows"} -> !transform.param<i64>
    %register_rows = transform.param.constant 8 : i64 {mlir_sched.distribution = {choice_weights = [1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01, 1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01, 1.600000e+01, 1.700000e+01, 1.800000e+01, 1.900000e+01, 2.000000e+01, 2.100000e+01, 2.200000e+01, 2.300000e+01, 2.400000e+01], choices = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24], kind = "categorical"}, mlir_sched.name = "register_rows"} -> !transform.param<i64>
    %cache_order = transform.param.constant ["rows", "columns"] {mlir_sched.distribution = {items = ["rows", "columns"], kind = "permutation", still = ["rows", "columns"]}, mlir_sched.name = "cache_order"} -> !transform.any_param
    %register_order = transform.param.constant ["columns", "rows"] {mlir_sched.distribution = {items = ["rows", "columns"], kind = "permutation"}, mlir_sched.name = "register_order"} -> !transform.any_param
    %reduction_step_0 = transform.param.constant 4 : i64 {mlir_sched.distribution = {extent = 24 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64, size_powers = [1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "reduction_step"} -> !transform.param<i64>
    %columns_operand = transform.param.constant "panel" {mlir_sched.distribution = {choice_weights = [1.000000e+00, 4.000000e+00], choices = ["in_place", "panel"], kind = "categorical"}, mlir_sched.name = "columns_operand"} -> !transform.any_param
    %fused_4, %fused_5 = transform.structured.fuse %tiled tile_sizes [%rows_0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_6, %fused_7 = transform.structured.fuse %fused_4 tile_sizes [0, %columns_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_8, %fused_9 = transform.structured.fuse %fused_6 tile_sizes [0, %register_columns] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_10, %fused_11 = transform.structured.fuse %fused_8 tile_sizes [%register_rows, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op_12:2 = transform.split_handle %ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_13, %tiled_14 = transform.structured.tile_using_for %op_12#0 tile_sizes [0, 0, %reduction_step_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %interchanged = transform.structured.interchange %tiled_13 iterator_interchange = [1, 0, 2] : (!transform.any_op) -> !transform.any_op
    transform.annotate %interchanged "mlir_sched.op_1_0" : !transform.any_op
    %loop = transform.cast %fused_11 : !transform.any_op to !transform.op<"scf.for">
    %loop_15, %loop_16 = transform.loop.peel %loop : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    %loop_17 = transform.cast %fused_9 : !transform.any_op to !transform.op<"scf.for">
    %loop_18, %loop_19 = transform.loop.peel %loop_17 : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %op_20 = transform.structured.match attributes {mlir_sched.op_1_0} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op_21:4 = transform.split_handle %op_20 : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %padded, %padded_22, %padded_23 = transform.structured.pad %op_21#0 <padding_values = [0.000000e+00 : f32, 0.000000e+00 : f32, 0.000000e+00 : f32], padding_dimensions = [0, 1, 2], nofold_flags = [1, 0, 0], copy_back_op = "none"> : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %copy = transform.get_producer_of_operand %padded[0] : (!transform.any_op) -> !transform.any_op
    %copy_24 = transform.cast %copy : !transform.any_op to !transform.op<"tensor.pad">
    %copy_25 = transform.structured.hoist_pad %copy_24 by 2 loops, transpose by [1, 0] : (!transform.op<"tensor.pad">) -> !transform.any_op
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops_26 = transform.structured.match ops{["linalg.fill", "linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_26 : !transform.any_op
    %ops_27 = transform.structured.match ops{["linalg.transpose"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_27 : !transform.any_op
    %ops_28 = transform.structured.match ops{["tensor.pad"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_28 vector_sizes [%register_columns, %reduction_step_0] : !transform.any_op, !transform.param<i64>, !transform.param<i64>
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
    %function_29 = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %function : (!transform.any_op) -> !transform.any_op
    %function_30 = transform.apply_registered_pass "iree-codegen-remove-single-iteration-loop" to %function_29 : (!transform.any_op) -> !transform.any_op
    %function_31 = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %function_30 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_31 "translation_info" = %value : !transform.any_op, !transform.any_param
    %value_32 = transform.param.constant "7158695fdf9e3f6d" -> !transform.any_param
    transform.annotate %function_31 "mlir_sched.applied" = %value_32 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

