#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  util.func private @prefetch_73d964ad2075(%arg0: memref<128x256xf32, #hal.descriptor_type<storage_buffer>>, %arg1: index, %arg2: index, %arg3: f32, %arg4: index) {
    %distance = arith.constant 32 : index
    %last = arith.constant 224 : index
    %sweep = arith.constant 32 : index
    %depth = arith.constant 128 : index
    %rows = arith.constant 8 : index
    %deepest = arith.constant 127 : index
    %right_16 = arith.constant 16 : index
    %next = arith.addi %arg2, %distance : index
    %panel = arith.minui %next, %last : index
    %passed = arith.remui %arg4, %sweep : index
    %step = arith.remui %arg1, %depth : index
    %block = arith.subi %arg1, %step : index
    %passed_steps = arith.muli %passed, %depth : index
    %tile_steps = arith.muli %step, %rows : index
    %steps = arith.addi %passed_steps, %tile_steps : index
    %fetched = arith.divui %steps, %sweep : index
    %turn = arith.addi %block, %fetched : index
    %at_0 = arith.minui %turn, %deepest : index
    %column_16 = arith.addi %panel, %right_16 : index
    memref.prefetch %arg0[%at_0, %panel], read, locality<2>, data : memref<128x256xf32, #hal.descriptor_type<storage_buffer>>
    memref.prefetch %arg0[%at_0, %column_16], read, locality<2>, data : memref<128x256xf32, #hal.descriptor_type<storage_buffer>>
    util.return
  }
  util.func private @prefetch_7c78dd4a3462(%arg0: memref<128x256xf32, strided<[256, 1], offset: ?>, #hal.descriptor_type<storage_buffer>>, %arg1: index, %arg2: index, %arg3: f32, %arg4: index) {
    %distance = arith.constant 32 : index
    %last = arith.constant 224 : index
    %sweep = arith.constant 32 : index
    %depth = arith.constant 128 : index
    %rows = arith.constant 8 : index
    %deepest = arith.constant 127 : index
    %right_16 = arith.constant 16 : index
    %next = arith.addi %arg2, %distance : index
    %panel = arith.minui %next, %last : index
    %passed = arith.remui %arg4, %sweep : index
    %step = arith.remui %arg1, %depth : index
    %block = arith.subi %arg1, %step : index
    %passed_steps = arith.muli %passed, %depth : index
    %tile_steps = arith.muli %step, %rows : index
    %steps = arith.addi %passed_steps, %tile_steps : index
    %fetched = arith.divui %steps, %sweep : index
    %turn = arith.addi %block, %fetched : index
    %at_0 = arith.minui %turn, %deepest : index
    %column_16 = arith.addi %panel, %right_16 : index
    memref.prefetch %arg0[%at_0, %panel], read, locality<2>, data : memref<128x256xf32, strided<[256, 1], offset: ?>, #hal.descriptor_type<storage_buffer>>
    memref.prefetch %arg0[%at_0, %column_16], read, locality<2>, data : memref<128x256xf32, strided<[256, 1], offset: ?>, #hal.descriptor_type<storage_buffer>>
    util.return
  }
  transform.named_sequence @insert_prefetch_1210eab5ae1f(%function: !transform.any_op {transform.readonly}) {
    %rows = transform.structured.match ops{["vector.transfer_read"]} filter_result_type = vector<8x4xf32> in %function : (!transform.any_op) -> !transform.any_op
    %product = transform.get_consumers_of_result %rows[0] : (!transform.any_op) -> !transform.any_op
    %columns = transform.get_producer_of_operand %product[1] : (!transform.any_op) -> !transform.any_op
    %read_0 = transform.structured.match ops{["vector.transfer_read"]} filter_operand_types = [memref<128x256xf32, #hal.descriptor_type<storage_buffer>>, index, index, f32] in %columns : (!transform.any_op) -> !transform.any_op
    %read_1 = transform.structured.match ops{["vector.transfer_read"]} filter_operand_types = [memref<128x256xf32, strided<[256, 1], offset: ?>, #hal.descriptor_type<storage_buffer>>, index, index, f32] in %columns : (!transform.any_op) -> !transform.any_op
    %reads = transform.merge_handles %read_0, %read_1 : !transform.any_op
    %read = transform.split_handle %reads : (!transform.any_op) -> !transform.any_op
    %row = transform.get_operand %rows[1] : (!transform.any_op) -> !transform.any_value
    transform.foreach %read_0 : !transform.any_op {
    ^bb0(%found: !transform.any_op):
      %place = transform.get_operand %found[all] : (!transform.any_op) -> !transform.any_value
      %inputs = transform.merge_handles %place, %row : !transform.any_value
      %code = transform.util.lookup_nearest_symbol_from_self @prefetch_73d964ad2075 : !transform.any_op
      transform.util.cast_and_call inline_call %code(%inputs) before %found : (!transform.any_op, !transform.any_value, !transform.any_op) -> ()
    }
    transform.foreach %read_1 : !transform.any_op {
    ^bb0(%found: !transform.any_op):
      %place = transform.get_operand %found[all] : (!transform.any_op) -> !transform.any_value
      %inputs = transform.merge_handles %place, %row : !transform.any_value
      %code = transform.util.lookup_nearest_symbol_from_self @prefetch_7c78dd4a3462 : !transform.any_op
      transform.util.cast_and_call inline_call %code(%inputs) before %found : (!transform.any_op, !transform.any_value, !transform.any_op) -> ()
    }
    transform.yield 
  }
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "contraction.registers"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %workgroup_0_0 = transform.param.constant 64 : i64 {mlir_sched.distribution = {extent = 64 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_0"} -> !transform.param<i64>
    %workgroup_1_0 = transform.param.constant 256 : i64 {mlir_sched.distribution = {extent = 256 : i64, kind = "perfect_tile", levels = 1 : i64, multiple_of = 16 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_1"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#1 tile_sizes [%workgroup_0_0, %workgroup_1_0, 0](mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#0 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tail = transform.param.constant "divisor" {mlir_sched.distribution = {choice_weights = [8.000000e+00, 4.000000e+00], choices = ["divisor", "peel"], kind = "categorical"}, mlir_sched.name = "tail"} -> !transform.any_param
    %columns_0 = transform.param.constant 64 : i64 {mlir_sched.distribution = {extent = 256 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 64 : i64, multiple_of = 16 : i64, power_of_two = true, size_powers = [5.000000e-01, 0.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %columns_1 = transform.param.constant 32 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %rows_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 64 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 12 : i64, size_powers = [5.000000e-01, 1.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "rows"} -> !transform.param<i64>
    %rows_1 = transform.param.constant 8 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "rows"} -> !transform.param<i64>
    %cache_order = transform.param.constant ["rows", "columns"] {mlir_sched.distribution = {items = ["rows", "columns"], kind = "permutation"}, mlir_sched.name = "cache_order"} -> !transform.any_param
    %register_order = transform.param.constant ["columns", "rows"] {mlir_sched.distribution = {items = ["rows", "columns"], kind = "permutation"}, mlir_sched.name = "register_order"} -> !transform.any_param
    %reduction_step_0 = transform.param.constant 4 : i64 {mlir_sched.distribution = {extent = 128 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64, size_powers = [0.000000e+00]}, mlir_sched.element = 0 : i64, mlir_sched.name = "reduction_step"} -> !transform.param<i64>
    %fused_2, %fused_3 = transform.structured.fuse %tiled tile_sizes [%rows_0, 0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_4, %fused_5 = transform.structured.fuse %fused_2 tile_sizes [0, %columns_0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_6, %fused_7 = transform.structured.fuse %fused_4 tile_sizes [0, %columns_1, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused_8, %fused_9 = transform.structured.fuse %fused_6 tile_sizes [%rows_1, 0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.matmul"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %tiled_10, %tiled_11 = transform.structured.tile_using_for %ops tile_sizes [0, 0, %reduction_step_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %prefetch = transform.param.constant "yes" {mlir_sched.distribution = {choice_weights = [3.000000e+00, 1.000000e+00], choices = ["yes", "no"], kind = "categorical"}, mlir_sched.name = "prefetch"} -> !transform.any_param
    transform.structured.vectorize %tiled_10 : !transform.any_op
    %ops_12 = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_12 : !transform.any_op
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
    %function = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %arg0 : (!transform.any_op) -> !transform.any_op
    transform.iree.eliminate_empty_tensors %function : (!transform.any_op) -> ()
    %function_13 = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %function : (!transform.any_op) -> !transform.any_op
    %function_14 = transform.apply_registered_pass "iree-codegen-remove-single-iteration-loop" to %function_13 : (!transform.any_op) -> !transform.any_op
    transform.include @insert_prefetch_1210eab5ae1f failures(propagate) (%function_14) : (!transform.any_op) -> ()
    %function_15 = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %function_14 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_15 "translation_info" = %value : !transform.any_op, !transform.any_param
    %value_16 = transform.param.constant "641a60013e3ad824" -> !transform.any_param
    transform.annotate %function_15 "mlir_sched.applied" = %value_16 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

