#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline workgroup_size = [32, 1, 1] subgroup_size = 8>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "linear_reduction"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:5 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %tile_0 = transform.param.constant 2 : i64 {mlir_sched.distribution = {choices = [1, 2], kind = "categorical"}, mlir_sched.name = "tile_0"} -> !transform.param<i64>
    %tile_1 = transform.param.constant 16 : i64 {mlir_sched.distribution = {choices = [1, 2, 4, 8, 16, 32], kind = "categorical"}, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %threads = transform.param.constant 32 : i64 {mlir_sched.distribution = {choices = [8, 16, 32], kind = "categorical"}, mlir_sched.name = "threads"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#4 tile_sizes [%tile_0, %tile_1, 0](mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#3 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_2, %fused_3 = transform.structured.fuse_into_containing_op %op#2 into %fused_1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_4, %fused_5 = transform.structured.fuse_into_containing_op %op#1 into %fused_3 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_6, %fused_7 = transform.structured.fuse_into_containing_op %op#0 into %fused_5 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_8, %tiled_9 = transform.structured.tile_using_forall %tiled tile_sizes [1, 1, 0](mapping = [#gpu.thread<linear_dim_1>, #gpu.thread<linear_dim_0>]) : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_10, %fused_11 = transform.structured.fuse_into_containing_op %fused into %tiled_9 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_12, %fused_13 = transform.structured.fuse_into_containing_op %fused_2 into %fused_11 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_14, %fused_15 = transform.structured.fuse_into_containing_op %fused_4 into %fused_13 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_16, %fused_17 = transform.structured.fuse_into_containing_op %fused_6 into %fused_15 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op_18:3 = transform.split_handle %ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %step_1_0 = transform.param.constant 5 : i64 {mlir_sched.distribution = {extent = 10 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "step_1"} -> !transform.param<i64>
    %tiled_19, %tiled_20 = transform.structured.tile_using_for %op_18#0 tile_sizes [0, 0, %step_1_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %step_3_0 = transform.param.constant 2 : i64 {mlir_sched.distribution = {extent = 10 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "step_3"} -> !transform.param<i64>
    %tiled_21, %tiled_22 = transform.structured.tile_using_for %op_18#1 tile_sizes [0, 0, %step_3_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %columns_0 = transform.param.constant 5 : i64 {mlir_sched.distribution = {extent = 10 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %tiled_23, %tiled_24 = transform.structured.tile_using_for %op_18#2 tile_sizes [0, 0, %columns_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_19 : !transform.any_op
    transform.structured.vectorize %tiled_21 : !transform.any_op
    transform.structured.vectorize %tiled_23 : !transform.any_op
    %ops_25 = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_25 : !transform.any_op
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.tensor.fold_tensor_subset_ops_into_vector_transfers
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %function = transform.apply_registered_pass "iree-spirv-initial-vector-lowering" to %arg0 : (!transform.any_op) -> !transform.any_op
    %function_26 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function : (!transform.any_op) -> !transform.any_op
    %function_27 = transform.apply_registered_pass "iree-spirv-final-vector-lowering" to %function_26 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_27 {
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_27 : !transform.any_op
    transform.iree.eliminate_empty_tensors %function_27 : (!transform.any_op) -> ()
    %function_28 = transform.iree.bufferize <target_gpu> %function_27 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_28 "translation_info" = %value : !transform.any_op, !transform.any_param
    %function_29 = transform.apply_registered_pass "iree-codegen-gpu-distribute-forall" to %function_28 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_29 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_29 : !transform.any_op
    transform.apply_patterns to %function_29 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_29 : !transform.any_op
    %value_30 = transform.param.constant "cbde2d89b4724ee0" -> !transform.any_param
    transform.annotate %function_29 "mlir_sched.applied" = %value_30 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

