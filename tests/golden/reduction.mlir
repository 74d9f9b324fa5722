#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "reduction"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:5 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %workgroup_0_0 = transform.param.constant 2 : i64 {mlir_sched.distribution = {extent = 4 : i64, kind = "perfect_tile", levels = 1 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_0"} -> !transform.param<i64>
    %workgroup_1_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 32 : i64, kind = "perfect_tile", levels = 1 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_1"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#4 tile_sizes [%workgroup_0_0, %workgroup_1_0, 0](mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#3 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_2, %fused_3 = transform.structured.fuse_into_containing_op %op#2 into %fused_1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_4, %fused_5 = transform.structured.fuse_into_containing_op %op#1 into %fused_3 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_6, %fused_7 = transform.structured.fuse_into_containing_op %op#0 into %fused_5 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %ops = transform.structured.match ops{["arith.divf"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #arith.fastmath<arcp> -> !transform.any_param
    transform.annotate %ops "fastmath" = %value : !transform.any_op, !transform.any_param
    %rows_0 = transform.param.constant 4 : i64 {mlir_sched.distribution = {extent = 32 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "rows"} -> !transform.param<i64>
    %fused_8, %fused_9:2 = transform.structured.fuse %tiled tile_sizes [1, %rows_0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops_10 = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op_11:3 = transform.split_handle %ops_10 : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %later_rows = transform.param.constant "tile" {mlir_sched.distribution = {choice_weights = [1.000000e+00, 2.000000e+00], choices = ["tile", "single"], kind = "categorical"}, mlir_sched.name = "later_rows"} -> !transform.any_param
    %partial, %partial_12, %partial_13, %partial_14 = transform.structured.tile_reduction_using_for %op_11#0 by tile_sizes = [0, 0, 16] {mlir_sched.static = [{attribute = "tile_sizes", distribution = {extent = 128 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 128 : i64, multiple_of = 16 : i64}, element = 0 : i64, index = 2 : i64, name = "lanes_128"}]} : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %partial_12 : !transform.any_op
    transform.structured.vectorize %partial_13 : !transform.any_op
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.vector.reorder_multi_reduction_dims
      transform.apply_patterns.vector.multi_reduction_flattening
      transform.apply_patterns.vector.multi_reduction_unrolling
    } : !transform.any_op
    %partial_15, %partial_16, %partial_17, %partial_18 = transform.structured.tile_reduction_using_for %op_11#1 by tile_sizes = [0, 0, 16] {mlir_sched.static = [{attribute = "tile_sizes", distribution = {extent = 128 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 128 : i64, multiple_of = 16 : i64}, element = 0 : i64, index = 2 : i64, name = "lanes_128"}]} : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %partial_16 : !transform.any_op
    transform.structured.vectorize %partial_17 : !transform.any_op
    %columns_4_0 = transform.param.constant 64 : i64 {mlir_sched.distribution = {extent = 128 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 256 : i64, multiple_of = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "columns_4"} -> !transform.param<i64>
    %tiled_19, %tiled_20 = transform.structured.tile_using_for %op_11#2 tile_sizes [0, 0, %columns_4_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_19 : !transform.any_op
    %ops_21 = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_21 : !transform.any_op
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
    %value_25 = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_24 "translation_info" = %value_25 : !transform.any_op, !transform.any_param
    %value_26 = transform.param.constant "8ae5d0c4522ad3b1" -> !transform.any_param
    transform.annotate %function_24 "mlir_sched.applied" = %value_26 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

