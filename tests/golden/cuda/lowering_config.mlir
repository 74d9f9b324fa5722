#translation = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<TileAndFuse> workgroup_size = [96, 1, 1] subgroup_size = 32>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "lowering_config"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tile_1_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 32 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %tile_1_1 = transform.param.constant 4 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %tile_2_0 = transform.param.constant 48 : i64 {mlir_sched.distribution = {extent = 48 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64, multiple_of = 4 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_2"} -> !transform.param<i64>
    %tile_2_1 = transform.param.constant 4 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_2"} -> !transform.param<i64>
    %reduction_step_0 = transform.param.constant 8 : i64 {mlir_sched.distribution = {extent = 64 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "reduction_step"} -> !transform.param<i64>
    %promote = transform.param.constant "yes" {mlir_sched.distribution = {choice_weights = [1.000000e+00, 1.000000e+00], choices = ["yes", "no"], kind = "categorical"}, mlir_sched.name = "promote"} -> !transform.any_param
    %value = transform.param.constant #iree_gpu.lowering_config<{promote_operands = [0, 1], reduction = [0, 0, 0, 8], thread = [1, 4, 4, 0], workgroup = [1, 32, 48, 0]}> -> !transform.any_param
    transform.annotate %op#1 "lowering_config" = %value : !transform.any_op, !transform.any_param
    %value_0 = transform.param.constant #translation -> !transform.any_param
    transform.annotate %arg0 "translation_info" = %value_0 : !transform.any_op, !transform.any_param
    %value_1 = transform.param.constant "b0f2c6e5d65426a7" -> !transform.any_param
    transform.annotate %arg0 "mlir_sched.applied" = %value_1 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

