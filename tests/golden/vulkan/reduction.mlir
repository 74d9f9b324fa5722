module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "reduction"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:3 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %tile_0_0 = transform.param.constant 4 : i64 {mlir_sched.distribution = {extent = 4 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_0"} -> !transform.param<i64>
    %tile_0_1 = transform.param.constant 1 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_0"} -> !transform.param<i64>
    %tile_1_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 64 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64, multiple_of = 4 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %tile_1_1 = transform.param.constant 4 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#2 tile_sizes [%tile_0_0, %tile_1_0](mapping = [#gpu.block<y>, #gpu.block<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %tiled_0 : (!transform.any_op) -> ()
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#1 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_2, %fused_3 = transform.structured.fuse_into_containing_op %op#0 into %fused_1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_4, %tiled_5 = transform.structured.tile_using_forall %tiled tile_sizes [%tile_0_1, %tile_1_1](mapping = [#gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_6, %fused_7 = transform.structured.fuse_into_containing_op %fused into %tiled_5 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_8, %fused_9 = transform.structured.fuse_into_containing_op %fused_2 into %fused_7 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op_10:2 = transform.split_handle %ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %step_1_0 = transform.param.constant 7 : i64 {mlir_sched.distribution = {extent = 49 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "step_1"} -> !transform.param<i64>
    %tiled_11, %tiled_12 = transform.structured.tile_using_for %op_10#0 tile_sizes [0, 0, %step_1_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_11 : !transform.any_op
    transform.structured.vectorize %op_10#1 : !transform.any_op
    %ops_13 = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_13 : !transform.any_op
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.tensor.fold_tensor_subset_ops_into_vector_transfers
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %function = transform.apply_registered_pass "iree-spirv-initial-vector-lowering" to %arg0 : (!transform.any_op) -> !transform.any_op
    %function_14 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function : (!transform.any_op) -> !transform.any_op
    %function_15 = transform.apply_registered_pass "iree-spirv-final-vector-lowering" to %function_14 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_15 {
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_15 : !transform.any_op
    transform.iree.eliminate_empty_tensors %function_15 : (!transform.any_op) -> ()
    %function_16 = transform.iree.bufferize <target_gpu> %function_15 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_16 : (!transform.any_op) -> ()
    transform.iree.map_nested_forall_to_gpu_threads %function_16 workgroup_dims = [8, 4, 1] subgroup_size = 8 sync_after_distribution = false : (!transform.any_op) -> ()
    transform.apply_patterns to %function_16 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_16 : !transform.any_op
    transform.apply_patterns to %function_16 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_16 : !transform.any_op
    %value = transform.param.constant "84beedbc3000fe58" -> !transform.any_param
    transform.annotate %function_16 "mlir_sched.applied" = %value : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

