#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "elementwise"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %workgroup_0_0 = transform.param.constant 96 : i64 {mlir_sched.distribution = {extent = 192 : i64, kind = "perfect_tile", levels = 1 : i64, multiple_of = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_0"} -> !transform.param<i64>
    %workgroup_1_0 = transform.param.constant 160 : i64 {mlir_sched.distribution = {extent = 160 : i64, kind = "perfect_tile", levels = 1 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_1"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %linalg_ops tile_sizes [%workgroup_0_0, %workgroup_1_0](mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %vector_0 = transform.param.constant 16 : i64 {mlir_sched.distribution = {extent = 96 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 256 : i64, multiple_of = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "vector"} -> !transform.param<i64>
    %tile_1_0 = transform.param.constant 8 : i64 {mlir_sched.distribution = {extent = 160 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %order = transform.param.constant ["1", "0"] {mlir_sched.distribution = {items = ["0", "1"], kind = "permutation"}, mlir_sched.name = "order"} -> !transform.any_param
    %tiled_1, %tiled_2 = transform.structured.tile_using_for %tiled tile_sizes [0, %tile_1_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_3, %tiled_4 = transform.structured.tile_using_for %tiled_1 tile_sizes [%vector_0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_3 : !transform.any_op
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
    %function_5 = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %function : (!transform.any_op) -> !transform.any_op
    %function_6 = transform.apply_registered_pass "iree-codegen-remove-single-iteration-loop" to %function_5 : (!transform.any_op) -> !transform.any_op
    %function_7 = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %function_6 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_7 "translation_info" = %value : !transform.any_op, !transform.any_param
    %value_8 = transform.param.constant "17bca74243f7edc3" -> !transform.any_param
    transform.annotate %function_7 "mlir_sched.applied" = %value_8 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

