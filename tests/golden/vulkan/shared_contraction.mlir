module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "shared_contraction"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:3 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %tile_rows_0 = transform.param.constant 16 : i64 {mlir_sched.distribution = {extent = 48 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_rows"} -> !transform.param<i64>
    %tile_rows_1 = transform.param.constant 4 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_rows"} -> !transform.param<i64>
    %tile_columns_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 96 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64, multiple_of = 4 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_columns"} -> !transform.param<i64>
    %tile_columns_1 = transform.param.constant 4 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_columns"} -> !transform.param<i64>
    %reduction_step = transform.param.constant 16 : i64 {mlir_sched.distribution = {choice_weights = [8.000000e+00, 1.600000e+01, 3.200000e+01, 6.400000e+01], choices = [8, 16, 32, 64], kind = "categorical"}, mlir_sched.name = "reduction_step"} -> !transform.param<i64>
    transform.iree.eliminate_empty_tensors %arg0 : (!transform.any_op) -> ()
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#2 tile_sizes [%tile_rows_0, %tile_columns_0](mapping = [#gpu.block<y>, #gpu.block<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %tiled_0 : (!transform.any_op) -> ()
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#1 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_2, %fused_3 = transform.structured.fuse_into_containing_op %op#0 into %fused_1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_4, %tiled_5 = transform.structured.tile_using_for %fused tile_sizes [0, 0, %reduction_step] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %sharing:3 = transform.iree.promote_operands %tiled_4 [0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %tiled_6, %tiled_7 = transform.structured.tile_using_forall %fused_2 tile_sizes [%tile_rows_1, %tile_columns_1](mapping = [#gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_8, %tiled_9 = transform.structured.tile_using_forall %sharing#0 tile_sizes [%tile_rows_1, %tile_columns_1, 0](mapping = [#gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_10, %tiled_11 = transform.structured.tile_using_forall %tiled tile_sizes [%tile_rows_1, %tile_columns_1](mapping = [#gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_8 : !transform.any_op
    transform.structured.vectorize %tiled_10 : !transform.any_op
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
    transform.iree.eliminate_empty_tensors %arg0 : (!transform.any_op) -> ()
    %function = transform.iree.bufferize <target_gpu> %arg0 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function : (!transform.any_op) -> ()
    transform.iree.map_nested_forall_to_gpu_threads %function workgroup_dims = [8, 4, 1] subgroup_size = 8 sync_after_distribution = false : (!transform.any_op) -> ()
    transform.iree.hoist_static_alloc %function : (!transform.any_op) -> ()
    transform.apply_patterns to %function {
      transform.apply_patterns.memref.fold_memref_alias_ops
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.memref.fold_memref_alias_ops
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    transform.iree.gpu_distribute_shared_memory_copy %function : (!transform.any_op) -> ()
    transform.apply_patterns to %function {
      transform.apply_patterns.memref.fold_memref_alias_ops
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    %function_12 = transform.apply_registered_pass "iree-spirv-initial-vector-lowering" to %function : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_12 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_12 : !transform.any_op
    transform.iree.apply_licm %function_12 : !transform.any_op
    %function_13 = transform.structured.hoist_redundant_vector_transfers %function_12 : (!transform.any_op) -> !transform.any_op
    %function_14 = transform.apply_registered_pass "lower-affine" to %function_13 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_14 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_14 : !transform.any_op
    transform.memref.erase_dead_alloc_and_stores %function_14 : (!transform.any_op) -> ()
    %function_15 = transform.apply_registered_pass "iree-spirv-final-vector-lowering" to %function_14 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_15 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_15 : !transform.any_op
    %value = transform.param.constant "12432577bc7772fa" -> !transform.any_param
    transform.annotate %function_15 "mlir_sched.applied" = %value : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

