module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "convolution"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tile_1_0 = transform.param.constant 8 : i64 {mlir_sched.distribution = {extent = 16 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %tile_1_1 = transform.param.constant 2 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %tile_2_0 = transform.param.constant 16 : i64 {mlir_sched.distribution = {extent = 16 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64, multiple_of = 4 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_2"} -> !transform.param<i64>
    %tile_2_1 = transform.param.constant 4 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_2"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#1 tile_sizes [1, %tile_1_0, %tile_2_0, 0, 0](mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %tiled_0 : (!transform.any_op) -> ()
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#0 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_2, %tiled_3 = transform.structured.tile_using_forall %tiled tile_sizes [1, %tile_1_1, %tile_2_1, 0, 0](mapping = [#gpu.thread<z>, #gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_4, %fused_5 = transform.structured.fuse_into_containing_op %fused into %tiled_3 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %tiled_6, %tiled_7 = transform.structured.tile_using_for %ops tile_sizes [0, 0, 0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_8, %tiled_9 = transform.structured.tile_using_for %tiled_6 tile_sizes [0, 0, 0, 0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %function = transform.apply_registered_pass "linalg-generalize-named-ops" to %arg0 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.fold_unit_extent_dims_via_slices
      transform.apply_patterns.canonicalization
      transform.apply_patterns.tensor.merge_consecutive_insert_extract_slice
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    %ops_10 = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_10 : !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.vector.reduction_to_contract
      transform.apply_patterns.vector.transfer_permutation_patterns
      transform.apply_patterns.vector.sink_ops
    } : !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.tensor.fold_tensor_subset_ops_into_vector_transfers
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    %function_11 = transform.apply_registered_pass "iree-spirv-initial-vector-lowering" to %function : (!transform.any_op) -> !transform.any_op
    %function_12 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function_11 : (!transform.any_op) -> !transform.any_op
    %function_13 = transform.apply_registered_pass "iree-spirv-final-vector-lowering" to %function_12 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_13 {
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_13 : !transform.any_op
    transform.iree.eliminate_empty_tensors %function_13 : (!transform.any_op) -> ()
    %function_14 = transform.iree.bufferize <target_gpu> %function_13 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_14 : (!transform.any_op) -> ()
    transform.iree.map_nested_forall_to_gpu_threads %function_14 workgroup_dims = [4, 4, 1] subgroup_size = 8 sync_after_distribution = false : (!transform.any_op) -> ()
    transform.apply_patterns to %function_14 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_14 : !transform.any_op
    transform.apply_patterns to %function_14 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_14 : !transform.any_op
    %value = transform.param.constant "5d0911a098aa0f4a" -> !transform.any_param
    transform.annotate %function_14 "mlir_sched.applied" = %value : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

