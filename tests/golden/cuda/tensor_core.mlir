module attributes {transform.with_named_sequence} {
  transform.named_sequence @forget(%arg0: !transform.any_op {transform.consumed}) {
    transform.yield 
  }
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "tensor_core"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tile_rows_0 = transform.param.constant 64 : i64 {mlir_sched.distribution = {extent = 256 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 128 : i64, max_outermost = 256 : i64, multiple_of = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_rows"} -> !transform.param<i64>
    %tile_rows_1 = transform.param.constant 32 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_rows"} -> !transform.param<i64>
    %tile_columns_0 = transform.param.constant 64 : i64 {mlir_sched.distribution = {extent = 256 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 128 : i64, max_outermost = 256 : i64, multiple_of = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_columns"} -> !transform.param<i64>
    %tile_columns_1 = transform.param.constant 32 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_columns"} -> !transform.param<i64>
    %reduction_step = transform.param.constant 32 : i64 {mlir_sched.distribution = {choice_weights = [1.600000e+01, 3.200000e+01, 6.400000e+01], choices = [16, 32, 64], kind = "categorical"}, mlir_sched.name = "reduction_step"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#1 tile_sizes [%tile_rows_0, %tile_columns_0, 0](mapping = [#gpu.block<y>, #gpu.block<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %tiled_0 : (!transform.any_op) -> ()
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#0 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_2, %tiled_3 = transform.structured.tile_using_for %tiled tile_sizes [0, 0, %reduction_step] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %sharing:3 = transform.iree.promote_operands %tiled_2 [0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %tiled_4, %tiled_5 = transform.structured.tile_using_forall %fused tile_sizes [%tile_rows_1, %tile_columns_1](mapping = [#gpu.warp<linear_dim_1>, #gpu.warp<linear_dim_0>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_6, %tiled_7 = transform.structured.tile_using_forall %sharing#0 tile_sizes [%tile_rows_1, %tile_columns_1, 0](mapping = [#gpu.warp<linear_dim_1>, #gpu.warp<linear_dim_0>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_6 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops : !transform.any_op
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.vector.reduction_to_contract
      transform.apply_patterns.vector.transfer_permutation_patterns
      transform.apply_patterns.vector.fold_arith_extension
      transform.apply_patterns.vector.sink_ops
    } : !transform.any_op
    transform.include @forget failures(propagate) (%tiled_7) : (!transform.any_op) -> ()
    transform.include @forget failures(propagate) (%tiled_5) : (!transform.any_op) -> ()
    transform.include @forget failures(propagate) (%sharing#2) : (!transform.any_op) -> ()
    transform.include @forget failures(propagate) (%sharing#1) : (!transform.any_op) -> ()
    transform.include @forget failures(propagate) (%tiled_3) : (!transform.any_op) -> ()
    transform.include @forget failures(propagate) (%fused_1) : (!transform.any_op) -> ()
    %bank_conflicts = transform.param.constant "avoided" {mlir_sched.distribution = {choices = ["kept", "avoided"], kind = "categorical"}, mlir_sched.name = "bank_conflicts"} -> !transform.any_param
    %pipeline_depth = transform.param.constant 3 : i64 {mlir_sched.distribution = {choices = [1, 2, 3, 4], kind = "categorical"}, mlir_sched.name = "pipeline_depth"} -> !transform.param<i64>
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    transform.iree.eliminate_empty_tensors %arg0 : (!transform.any_op) -> ()
    %function = transform.iree.bufferize <target_gpu> %arg0 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function : (!transform.any_op) -> ()
    transform.iree.map_nested_forall_to_gpu_threads %function workgroup_dims = [128, 1, 1] sync_after_distribution = false : (!transform.any_op) -> ()
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
    %ops_8 = transform.structured.match ops{["memref.alloc"]} in %function : (!transform.any_op) -> !transform.op<"memref.alloc">
    %ops_9 = transform.memref.multibuffer %ops_8 <factor = 3, skip_analysis> : (!transform.op<"memref.alloc">) -> !transform.any_op
    transform.iree.gpu_distribute_shared_memory_copy %function : (!transform.any_op) -> ()
    transform.apply_patterns to %function {
      transform.apply_patterns.memref.fold_memref_alias_ops
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.iree.prepare_vector_to_mma
    } : !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.iree.unroll_vectors_gpu_mma_sync
    } : !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    transform.iree.apply_licm %function : !transform.any_op
    %function_10 = transform.structured.hoist_redundant_vector_transfers %function : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_10 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_10 : !transform.any_op
    transform.iree.apply_licm %function_10 : !transform.any_op
    %function_11 = transform.structured.hoist_redundant_vector_transfers %function_10 : (!transform.any_op) -> !transform.any_op
    transform.memref.erase_dead_alloc_and_stores %function_11 : (!transform.any_op) -> ()
    transform.apply_patterns to %function_11 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_11 : !transform.any_op
    transform.iree.vector.vector_to_mma_conversion %function_11 <use_mma_sync> : (!transform.any_op) -> ()
    transform.apply_patterns to %function_11 {
      transform.apply_patterns.vector.cast_away_vector_leading_one_dim
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_11 : !transform.any_op
    transform.iree.create_async_groups %function_11 : (!transform.any_op) -> ()
    transform.apply_patterns to %function_11 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_11 : !transform.any_op
    %ops_12 = transform.structured.match ops{["scf.for"]} in %function_11 : (!transform.any_op) -> !transform.op<"scf.for">
    %ops_13 = transform.iree.pipeline_shared_memory_copies %ops_12 <depth = 3> : (!transform.op<"scf.for">) -> !transform.any_op
    transform.apply_patterns to %function_11 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_11 : !transform.any_op
    transform.iree.reduce_shared_memory_bank_conflicts %function_11 <padding_size_bits = 128> : (!transform.any_op) -> ()
    transform.apply_patterns to %function_11 {
      transform.apply_patterns.memref.fold_memref_alias_ops
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_11 : !transform.any_op
    %value = transform.param.constant "fb6cba4b9ffb65e3" -> !transform.any_param
    transform.annotate %function_11 "mlir_sched.applied" = %value : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

