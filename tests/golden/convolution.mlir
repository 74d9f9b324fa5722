#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "convolution"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:3 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %workgroup_0_0 = transform.param.constant 23 : i64 {mlir_sched.distribution = {extent = 23 : i64, kind = "perfect_tile", levels = 1 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_0"} -> !transform.param<i64>
    %workgroup_1_0 = transform.param.constant 19 : i64 {mlir_sched.distribution = {extent = 19 : i64, kind = "perfect_tile", levels = 1 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_1"} -> !transform.param<i64>
    %workgroup_2_0 = transform.param.constant 19 : i64 {mlir_sched.distribution = {extent = 19 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_2"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#2 tile_sizes [%workgroup_0_0, %workgroup_1_0, %workgroup_2_0](mapping = [#iree_codegen.workgroup_mapping<z>, #iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#1 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused_2, %fused_3 = transform.structured.fuse_into_containing_op %op#0 into %fused_1 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tail = transform.param.constant "peel" {mlir_sched.distribution = {choice_weights = [1.000000e-01, 2.000000e+00], choices = ["divisor", "peel"], kind = "categorical"}, mlir_sched.name = "tail"} -> !transform.any_param
    %vector = transform.param.constant 16 : i64 {mlir_sched.distribution = {choices = [16], kind = "categorical"}, mlir_sched.name = "vector"} -> !transform.param<i64>
    %rows_1 = transform.param.constant 8 : i64 {mlir_sched.distribution = {high = 16 : i64, kind = "int_range", low = 1 : i64}, mlir_sched.name = "rows_1"} -> !transform.param<i64>
    %rows_0 = transform.param.constant 1 : i64 {mlir_sched.distribution = {high = 16 : i64, kind = "int_range", low = 1 : i64}, mlir_sched.name = "rows_0"} -> !transform.param<i64>
    %order = transform.param.constant ["2", "0", "1"] {mlir_sched.distribution = {items = ["1", "0", "2"], kind = "permutation"}, mlir_sched.name = "order"} -> !transform.any_param
    %innermost = transform.param.constant "channels" {mlir_sched.distribution = {choices = ["channels", "filter"], kind = "categorical"}, mlir_sched.name = "innermost"} -> !transform.any_param
    %unrolled_loops = transform.param.constant 1 : i64 {mlir_sched.distribution = {choices = [0, 1, 2], kind = "categorical"}, mlir_sched.name = "unrolled_loops"} -> !transform.param<i64>
    %fused_4, %fused_5 = transform.structured.fuse %tiled tile_sizes [0, 0, %vector] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_6, %fused_7 = transform.structured.fuse %fused_4 tile_sizes [%rows_0, 0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_8, %fused_9 = transform.structured.fuse %fused_6 tile_sizes [0, %rows_1, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %loop = transform.cast %fused_9 : !transform.any_op to !transform.op<"scf.for">
    %loop_10, %loop_11 = transform.loop.peel %loop : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    %loop_12 = transform.cast %fused_5 : !transform.any_op to !transform.op<"scf.for">
    %loop_13, %loop_14 = transform.loop.peel %loop_12 : (!transform.op<"scf.for">) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.fill", "linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op_15:12 = transform.split_handle %ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %tiled_16, %tiled_17 = transform.structured.tile_using_for %op_15#11 tile_sizes [0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_17 factor = 3 : !transform.any_op
    %tiled_18, %tiled_19 = transform.structured.tile_using_for %op_15#10 tile_sizes [0, 0, 0, 1, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_20, %tiled_21 = transform.structured.tile_using_for %tiled_18 tile_sizes [0, 0, 0, 0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_22, %tiled_23 = transform.structured.tile_using_for %tiled_20 tile_sizes [0, 1, 0, 0, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_24, %tiled_25 = transform.structured.tile_using_for %tiled_22 tile_sizes [0, 0, 0, 0, 0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_25 factor = 5 : !transform.any_op
    transform.loop.unroll %tiled_23 factor = 3 : !transform.any_op
    %tiled_26, %tiled_27 = transform.structured.tile_using_for %op_15#9 tile_sizes [0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_27 factor = 3 : !transform.any_op
    %tiled_28, %tiled_29 = transform.structured.tile_using_for %op_15#8 tile_sizes [0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_29 factor = 8 : !transform.any_op
    %tiled_30, %tiled_31 = transform.structured.tile_using_for %op_15#7 tile_sizes [0, 0, 0, 1, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_32, %tiled_33 = transform.structured.tile_using_for %tiled_30 tile_sizes [0, 0, 0, 0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_34, %tiled_35 = transform.structured.tile_using_for %tiled_32 tile_sizes [0, 1, 0, 0, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_36, %tiled_37 = transform.structured.tile_using_for %tiled_34 tile_sizes [0, 0, 0, 0, 0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_37 factor = 5 : !transform.any_op
    transform.loop.unroll %tiled_35 factor = 8 : !transform.any_op
    %tiled_38, %tiled_39 = transform.structured.tile_using_for %op_15#6 tile_sizes [0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_39 factor = 8 : !transform.any_op
    %tiled_40, %tiled_41 = transform.structured.tile_using_for %op_15#5 tile_sizes [0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_41 factor = 3 : !transform.any_op
    %tiled_42, %tiled_43 = transform.structured.tile_using_for %op_15#4 tile_sizes [0, 0, 0, 1, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_44, %tiled_45 = transform.structured.tile_using_for %tiled_42 tile_sizes [0, 0, 0, 0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_46, %tiled_47 = transform.structured.tile_using_for %tiled_44 tile_sizes [0, 1, 0, 0, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_48, %tiled_49 = transform.structured.tile_using_for %tiled_46 tile_sizes [0, 0, 0, 0, 0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_49 factor = 5 : !transform.any_op
    transform.loop.unroll %tiled_47 factor = 3 : !transform.any_op
    %tiled_50, %tiled_51 = transform.structured.tile_using_for %op_15#3 tile_sizes [0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_51 factor = 3 : !transform.any_op
    %tiled_52, %tiled_53 = transform.structured.tile_using_for %op_15#2 tile_sizes [0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_53 factor = 8 : !transform.any_op
    %tiled_54, %tiled_55 = transform.structured.tile_using_for %op_15#1 tile_sizes [0, 0, 0, 1, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_56, %tiled_57 = transform.structured.tile_using_for %tiled_54 tile_sizes [0, 0, 0, 0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_58, %tiled_59 = transform.structured.tile_using_for %tiled_56 tile_sizes [0, 1, 0, 0, 0, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tiled_60, %tiled_61 = transform.structured.tile_using_for %tiled_58 tile_sizes [0, 0, 0, 0, 0, 1] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_61 factor = 5 : !transform.any_op
    transform.loop.unroll %tiled_59 factor = 8 : !transform.any_op
    %tiled_62, %tiled_63 = transform.structured.tile_using_for %op_15#0 tile_sizes [0, 1, 0] : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    transform.loop.unroll %tiled_63 factor = 8 : !transform.any_op
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
    %ops_64 = transform.structured.match ops{["linalg.generic"]} in %function : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_64 : !transform.any_op
    transform.apply_patterns to %function {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.tensor.fold_tensor_subset_ops_into_vector_transfers
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %function : !transform.any_op
    %function_65 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %function : (!transform.any_op) -> !transform.any_op
    transform.iree.eliminate_empty_tensors %function_65 : (!transform.any_op) -> ()
    %function_66 = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %function_65 : (!transform.any_op) -> !transform.any_op
    %function_67 = transform.apply_registered_pass "iree-codegen-remove-single-iteration-loop" to %function_66 : (!transform.any_op) -> !transform.any_op
    %function_68 = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %function_67 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_68 "translation_info" = %value : !transform.any_op, !transform.any_param
    %value_69 = transform.param.constant "627a6dff7eed89a7" -> !transform.any_param
    transform.annotate %function_68 "mlir_sched.applied" = %value_69 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

