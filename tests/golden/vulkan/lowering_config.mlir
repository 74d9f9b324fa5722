#config = #iree_codegen.lowering_config<tile_sizes = [[1, 32, 48, 0], [1, 4, 4, 0], [0, 0, 0, 8]]>
#translation = #iree_codegen.translation_info<pipeline = #iree_gpu.spirv_pipeline<BaseVectorize> workgroup_size = [12, 8, 1]>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "lowering_config"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %tile_1_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 32 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %tile_1_1 = transform.param.constant 4 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_1"} -> !transform.param<i64>
    %tile_2_0 = transform.param.constant 48 : i64 {mlir_sched.distribution = {extent = 48 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 16 : i64, max_outermost = 16384 : i64, multiple_of = 4 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "tile_2"} -> !transform.param<i64>
    %tile_2_1 = transform.param.constant 4 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "tile_2"} -> !transform.param<i64>
    %reduction_step_0 = transform.param.constant 8 : i64 {mlir_sched.distribution = {extent = 64 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "reduction_step"} -> !transform.param<i64>
    %value = transform.param.constant #config -> !transform.any_param
    transform.annotate %op#1 "lowering_config" = %value : !transform.any_op, !transform.any_param
    %value_0 = transform.param.constant #translation -> !transform.any_param
    transform.annotate %arg0 "translation_info" = %value_0 : !transform.any_op, !transform.any_param
    %value_1 = transform.param.constant "ceaf9e22a5922b19" -> !transform.any_param
    transform.annotate %arg0 "mlir_sched.applied" = %value_1 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

