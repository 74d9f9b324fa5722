#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "reduction"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %workgroup_0_0 = transform.param.constant 31 : i64 {mlir_sched.distribution = {extent = 31 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_0"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#1 tile_sizes [%workgroup_0_0, 0](mapping = [#iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#0 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tail = transform.param.constant "peel" {mlir_sched.distribution = {choices = ["divisor", "peel"], kind = "categorical"}, mlir_sched.name = "tail"} -> !transform.any_param
    %rows_0 = transform.param.constant 1 : i64 {mlir_sched.distribution = {extent = 31 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "rows"} -> !transform.param<i64>
    %fused_2, %fused_3 = transform.structured.fuse %tiled tile_sizes [%rows_0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %partial, %partial_4, %partial_5, %partial_6 = transform.structured.tile_reduction_using_for %ops by tile_sizes = [0, 16] {mlir_sched.static = [{attribute = "tile_sizes", distribution = {choices = [16, 32, 64], kind = "categorical"}, element = -1 : i64, index = 1 : i64, name = "lanes_77"}]} : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %loop = transform.cast %partial_6 : !transform.any_op to !transform.op<"scf.for">
    %loop_7, %loop_8 = transform.loop.peel %loop : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops_9 = transform.structured.match ops{["linalg.fill", "linalg.generic", "linalg.reduce"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_9 : !transform.any_op
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
    %function_10 = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %function : (!transform.any_op) -> !transform.any_op
    %function_11 = transform.apply_registered_pass "iree-codegen-remove-single-iteration-loop" to %function_10 : (!transform.any_op) -> !transform.any_op
    %function_12 = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %function_11 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_12 "translation_info" = %value : !transform.any_op, !transform.any_param
    %value_13 = transform.param.constant "f979e96ee45a0d4e" -> !transform.any_param
    transform.annotate %function_12 "mlir_sched.applied" = %value_13 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

