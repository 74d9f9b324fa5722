#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "several_results"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:4 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %workgroup_0_0 = transform.param.constant 4 : i64 {mlir_sched.distribution = {extent = 24 : i64, kind = "perfect_tile", levels = 1 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_0"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#3 tile_sizes [%workgroup_0_0, 0](mapping = [#iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#2 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_cse to %arg0 : !transform.any_op
    %fused_2, %fused_3 = transform.structured.fuse_into_containing_op %op#1 into %fused_1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_4, %fused_5 = transform.structured.fuse_into_containing_op %op#0 into %fused_3 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op_6:3 = transform.split_handle %ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %columns_1_0 = transform.param.constant 64 : i64 {mlir_sched.distribution = {extent = 128 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 128 : i64, multiple_of = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "columns_1"} -> !transform.param<i64>
    %rows_1_0 = transform.param.constant 2 : i64 {mlir_sched.distribution = {extent = 4 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 8 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "rows_1"} -> !transform.param<i64>
    %tiled_7, %tiled_8:2 = transform.structured.tile_using_for %op_6#0 tile_sizes [%rows_1_0, %columns_1_0] : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_7 : !transform.any_op
    %rows_2_0 = transform.param.constant 4 : i64 {mlir_sched.distribution = {extent = 4 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 8 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "rows_2"} -> !transform.param<i64>
    %tiled_9, %tiled_10 = transform.structured.tile_using_for %op_6#1 tile_sizes [%rows_2_0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %partial, %partial_11, %partial_12, %partial_13 = transform.structured.tile_reduction_using_for %tiled_9 by tile_sizes = [0, 32] {mlir_sched.static = [{attribute = "tile_sizes", distribution = {extent = 128 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 128 : i64, multiple_of = 16 : i64}, element = 0 : i64, index = 1 : i64, name = "lanes_2"}]} : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %partial_11 : !transform.any_op
    transform.structured.vectorize %partial_12 : !transform.any_op
    %columns_3_0 = transform.param.constant 128 : i64 {mlir_sched.distribution = {extent = 128 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 128 : i64, multiple_of = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "columns_3"} -> !transform.param<i64>
    %rows_3_0 = transform.param.constant 1 : i64 {mlir_sched.distribution = {extent = 4 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 8 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "rows_3"} -> !transform.param<i64>
    %tiled_14, %tiled_15:2 = transform.structured.tile_using_for %op_6#2 tile_sizes [%rows_3_0, %columns_3_0] : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_14 : !transform.any_op
    %ops_16 = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_16 : !transform.any_op
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
    %function_17 = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %function : (!transform.any_op) -> !transform.any_op
    %function_18 = transform.apply_registered_pass "iree-codegen-remove-single-iteration-loop" to %function_17 : (!transform.any_op) -> !transform.any_op
    %function_19 = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %function_18 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_19 "translation_info" = %value : !transform.any_op, !transform.any_param
    %value_20 = transform.param.constant "b62c4e897dcab1d1" -> !transform.any_param
    transform.annotate %function_19 "mlir_sched.applied" = %value_20 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

