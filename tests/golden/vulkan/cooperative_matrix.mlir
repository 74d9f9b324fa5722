#config = #iree_codegen.lowering_config<tile_sizes = [[64, 128, 0], [32, 64, 0], [0, 0, 32], [16, 16, 16]]>
#translation = #iree_codegen.translation_info<pipeline = #iree_gpu.spirv_pipeline<CooperativeMatrixVectorize> workgroup_size = [64, 2, 1] subgroup_size = 32, {pipeline_depth = 1 : i64, store_stage = 0 : i64}>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "cooperative_matrix"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tile_rows_0 = transform.param.constant 64 : i64 {mlir_sched.distribution = {extent = 128 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 128 : i64, max_outermost = 256 : i64, multiple_of = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_rows"} -> !transform.param<i64>
    %tile_rows_1 = transform.param.constant 32 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_rows"} -> !transform.param<i64>
    %tile_columns_0 = transform.param.constant 128 : i64 {mlir_sched.distribution = {extent = 256 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 128 : i64, max_outermost = 256 : i64, multiple_of = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_columns"} -> !transform.param<i64>
    %tile_columns_1 = transform.param.constant 64 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_columns"} -> !transform.param<i64>
    %reduction_step = transform.param.constant 32 : i64 {mlir_sched.distribution = {choice_weights = [1.600000e+01, 3.200000e+01, 6.400000e+01], choices = [16, 32, 64], kind = "categorical"}, mlir_sched.name = "reduction_step"} -> !transform.param<i64>
    %pipeline = transform.param.constant "1, early" {mlir_sched.distribution = {choices = ["0", "1, early", "1, late", "2, early", "2, late"], kind = "categorical"}, mlir_sched.name = "pipeline"} -> !transform.any_param
    %value = transform.param.constant #config -> !transform.any_param
    transform.annotate %op#1 "lowering_config" = %value : !transform.any_op, !transform.any_param
    %value_0 = transform.param.constant #translation -> !transform.any_param
    transform.annotate %arg0 "translation_info" = %value_0 : !transform.any_op, !transform.any_param
    %value_1 = transform.param.constant "8a49485910570c2a" -> !transform.any_param
    transform.annotate %arg0 "mlir_sched.applied" = %value_1 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

