module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "contraction.threads"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:3 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %tile_0_0 = transform.param.constant 48 : i64 {mlir_sched.distribution = {extent = 48 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_0"} -> !transform.param<i64>
    %tile_0_1 = transform.param.constant 6 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_0"} -> !transform.param<i64>
    %tile_1_0 = transform.param.constant 96 : i64 {mlir_sched.distribution = {extent = 96 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64, multiple_of = 4 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %tile_1_1 = transform.param.constant 8 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#2 tile_sizes [%tile_0_0, %tile_1_0](mapping = [#gpu.block<y>, #gpu.block<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %tiled_0 : (!transform.any_op) -> ()
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#1 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_2, %fused_3 = transform.structured.fuse_into_containing_op %op#0 into %fused_1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_4, %tiled_5 = transform.structured.tile_using_forall %tiled tile_sizes [%tile_0_1, %tile_1_1](mapping = [#gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_6, %fused_7 = transform.structured.fuse_into_containing_op %fused into %tiled_5 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_8, %fused_9 = transform.structured.fuse_into_containing_op %fused_2 into %fused_7 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %reduction_step_0 = transform.param.constant 4 : i64 {mlir_sched.distribution = {extent = 64 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "reduction_step"} -> !transform.param<i64>
    %tiled_10, %tiled_11 = transform.structured.tile_using_for %fused_6 tile_sizes [0, 0, %reduction_step_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_10 : !transform.any_op
    transform.structured.vectorize %tiled_4 : !transform.any_op
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
    %function = transform.apply_registered_pass "iree-spirv-initial-vector-lowering" to %arg0 : (!transform.any_op) -> !transform.any_op
    %function_12 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function : (!transform.any_op) -> !transform.any_op
    %function_13 = transform.apply_registered_pass "iree-spirv-final-vector-lowering" to %function_12 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_13 {
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_13 : !transform.any_op
    transform.iree.eliminate_empty_tensors %function_13 : (!transform.any_op) -> ()
    %function_14 = transform.iree.bufferize <target_gpu> %function_13 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_14 : (!transform.any_op) -> ()
    transform.iree.map_nested_forall_to_gpu_threads %function_14 workgroup_dims = [12, 8, 1] subgroup_size = 8 sync_after_distribution = false : (!transform.any_op) -> ()
    transform.apply_patterns to %function_14 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_14 : !transform.any_op
    transform.apply_patterns to %function_14 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_14 : !transform.any_op
    %value = transform.param.constant "7f6b58c7f8cefb25" -> !transform.any_param
    transform.annotate %function_14 "mlir_sched.applied" = %value : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

