module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "convolution"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:3 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %tile_2_0 = transform.param.constant 13 : i64 {mlir_sched.distribution = {extent = 13 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_2"} -> !transform.param<i64>
    %tile_2_1 = transform.param.constant 13 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_2"} -> !transform.param<i64>
    %tile_3_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 32 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64, multiple_of = 4 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_3"} -> !transform.param<i64>
    %tile_3_1 = transform.param.constant 4 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_3"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#2 tile_sizes [0, 1, %tile_2_0, %tile_3_0](mapping = [#gpu.block<z>, #gpu.block<y>, #gpu.block<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.iree.populate_workgroup_count_region_using_num_threads_slice %tiled_0 : (!transform.any_op) -> ()
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#1 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_2, %fused_3 = transform.structured.fuse_into_containing_op %op#0 into %fused_1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_4, %tiled_5 = transform.structured.tile_using_forall %tiled tile_sizes [0, 1, %tile_2_1, %tile_3_1](mapping = [#gpu.thread<z>, #gpu.thread<y>, #gpu.thread<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_6, %fused_7 = transform.structured.fuse_into_containing_op %fused into %tiled_5 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_8, %fused_9 = transform.structured.fuse_into_containing_op %fused_2 into %fused_7 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_10, %fused_11 = transform.structured.fuse %tiled_4 tile_sizes [1, 0, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op_12:2 = transform.split_handle %ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %channels_0 = transform.param.constant 1 : i64 {mlir_sched.distribution = {extent = 3 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64, size_powers = [1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "channels"} -> !transform.param<i64>
    %innermost = transform.param.constant "filter" {mlir_sched.distribution = {choices = ["channels", "filter"], kind = "categorical"}, mlir_sched.name = "innermost"} -> !transform.any_param
    %tiled_13, %tiled_14 = transform.structured.tile_using_for %op_12#0 tile_sizes [0, 0, 0, 0, 0, 0, %channels_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_15, %tiled_16 = transform.structured.tile_using_for %tiled_13 tile_sizes [0, 0, 0, 0, 1, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_17, %tiled_18 = transform.structured.tile_using_for %tiled_15 tile_sizes [0, 0, 0, 0, 0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %ops_19 = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %tiled_20, %tiled_21 = transform.structured.tile_using_for %ops_19 tile_sizes [0, 0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_22, %tiled_23 = transform.structured.tile_using_for %tiled_17 tile_sizes [0, 0, 1, 0, 0, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_24, %tiled_25 = transform.structured.tile_using_for %op_12#1 tile_sizes [0, 0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_25 factor = 13 : !transform.any_op
    transform.loop.unroll %tiled_23 factor = 13 : !transform.any_op
    transform.loop.unroll %tiled_21 factor = 13 : !transform.any_op
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
    %ops_26 = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_26 : !transform.any_op
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
    %function_27 = transform.apply_registered_pass "iree-spirv-initial-vector-lowering" to %function : (!transform.any_op) -> !transform.any_op
    %function_28 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function_27 : (!transform.any_op) -> !transform.any_op
    %function_29 = transform.apply_registered_pass "iree-spirv-final-vector-lowering" to %function_28 : (!transform.any_op) -> !transform.any_op
    transform.apply_patterns to %function_29 {
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_29 : !transform.any_op
    transform.iree.eliminate_empty_tensors %function_29 : (!transform.any_op) -> ()
    %function_30 = transform.iree.bufferize <target_gpu> %function_29 : (!transform.any_op) -> !transform.any_op
    transform.iree.forall_to_workgroup %function_30 : (!transform.any_op) -> ()
    transform.iree.map_nested_forall_to_gpu_threads %function_30 workgroup_dims = [8, 1, 1] subgroup_size = 8 sync_after_distribution = false : (!transform.any_op) -> ()
    transform.apply_patterns to %function_30 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_30 : !transform.any_op
    transform.apply_patterns to %function_30 {
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function_30 : !transform.any_op
    %value = transform.param.constant "eb1a37a07ca1729e" -> !transform.any_param
    transform.annotate %function_30 "mlir_sched.applied" = %value : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

