#config = #iree_codegen.lowering_config<tile_sizes = [[], [0, 192]]>
#config1 = #iree_codegen.lowering_config<tile_sizes = [[1], [0, 192]]>
#translation = #iree_codegen.translation_info<pipeline = #iree_gpu.spirv_pipeline<SubgroupReduce> workgroup_size = [48, 1, 1]>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "subgroup_reduction"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:5 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    %vector = transform.param.constant 4 : i64 {mlir_sched.distribution = {choices = [1, 2, 4], kind = "categorical"}, mlir_sched.name = "vector"} -> !transform.param<i64>
    %threads = transform.param.constant 48 : i64 {mlir_sched.distribution = {choices = [8, 16, 24, 32, 48, 64], kind = "categorical"}, mlir_sched.name = "threads"} -> !transform.param<i64>
    %repeats = transform.param.constant 1 : i64 {mlir_sched.distribution = {choices = [1], kind = "categorical"}, mlir_sched.name = "repeats"} -> !transform.param<i64>
    %value = transform.param.constant #config -> !transform.any_param
    transform.annotate %op#0 "lowering_config" = %value : !transform.any_op, !transform.any_param
    %value_0 = transform.param.constant #config -> !transform.any_param
    transform.annotate %op#1 "lowering_config" = %value_0 : !transform.any_op, !transform.any_param
    %value_1 = transform.param.constant #config -> !transform.any_param
    transform.annotate %op#4 "lowering_config" = %value_1 : !transform.any_op, !transform.any_param
    %value_2 = transform.param.constant #config1 -> !transform.any_param
    transform.annotate %op#3 "lowering_config" = %value_2 : !transform.any_op, !transform.any_param
    %value_3 = transform.param.constant #translation -> !transform.any_param
    transform.annotate %arg0 "translation_info" = %value_3 : !transform.any_op, !transform.any_param
    %value_4 = transform.param.constant "52befef98c9372b4" -> !transform.any_param
    transform.annotate %arg0 "mlir_sched.applied" = %value_4 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

