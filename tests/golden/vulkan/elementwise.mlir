module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "elementwise"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %tile_0_0 = transform.param.constant 48 : i64 {mlir_sched.distribution = {extent = 192 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64, multiple_of = 4 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_0"} -> !transform.param<i64>
    %tile_0_1 = transform.param.constant 4 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_0"} -> !transform.param<i64>
    %tile_1_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 160 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %tile_1_1 = transform.param.constant 4 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %linalg_ops tile_sizes [%tile_0_0, %tile_1_0](mapping = [#gpu.block<y>, #gpu.block<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %tiled_0 : (!transform.any_op) -> ()
    %tiled_1, %tiled_2 = transform.structured.tile_using_forall %tiled tile_sizes [%tile_0_1, %tile_1_1](mapping = [#gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_1 : !transform.any_op
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.tensor.fold_tensor_subset_ops_into_vector_transfers
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %function = transform.apply_registered_pass "iree-spirv-initial-vector-lowering" to %arg0 : (!transform.any_op) -> !transform.any_op
    %function_3 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function : (!transform.any_op) -> !transform.any_op
    %function_4 = transform.apply_registered_pass "iree-spirv-final-vector-lowering" to %function_3 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_4 {
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_4 : !transform.any_op
    transform.iree.eliminate_empty_tensors %function_4 : (!transform.any_op) -> ()
    %function_5 = transform.iree.bufferize <target_gpu> %function_4 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_5 : (!transform.any_op) -> ()
    transform.iree.map_nested_forall_to_gpu_threads %function_5 workgroup_dims = [8, 12, 1] subgroup_size = 8 sync_after_distribution = false : (!transform.any_op) -> ()
    transform.apply_patterns to %function_5 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_5 : !transform.any_op
    transform.apply_patterns to %function_5 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_5 : !transform.any_op
    %value = transform.param.constant "b30ab63aa8cd733c" -> !transform.any_param
    transform.annotate %function_5 "mlir_sched.applied" = %value : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

