#config = #iree_cpu.lowering_config<distribution = [16, 32, 0], vector_common_parallel = [8, 32, 0], vector_reduction = [0, 0, 2]>
#translation = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>, {enable_loop_peeling}>
module attributes {transform.with_named_sequence} {
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "lowering_config"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %register_1 = transform.param.constant 32 : i64 {mlir_sched.distribution = {choice_weights = [1.000000e+00, 2.000000e+00, 4.000000e+00, 8.000000e+00, 1.600000e+01, 3.200000e+01], choices = [1, 2, 4, 8, 16, 32], kind = "categorical"}, mlir_sched.name = "register_1"} -> !transform.param<i64>
    %register_0 = transform.param.constant 8 : i64 {mlir_sched.distribution = {choice_weights = [1.000000e+00, 2.000000e+00, 4.000000e+00, 8.000000e+00], choices = [1, 2, 4, 8], kind = "categorical"}, mlir_sched.name = "register_0"} -> !transform.param<i64>
    %distribution_0 = transform.param.constant 16 : i64 {mlir_sched.distribution = {choice_weights = [1.000000e+00, 2.000000e+00], choices = [8, 16], kind = "categorical"}, mlir_sched.name = "distribution_0"} -> !transform.param<i64>
    %distribution_1 = transform.param.constant 32 : i64 {mlir_sched.distribution = {choice_weights = [1.000000e+00], choices = [32], kind = "categorical"}, mlir_sched.name = "distribution_1"} -> !transform.param<i64>
    %reduction_step = transform.param.constant 2 : i64 {mlir_sched.distribution = {high = 16 : i64, kind = "power_of_two", low = 1 : i64}, mlir_sched.name = "reduction_step"} -> !transform.param<i64>
    %peel = transform.param.constant "yes" {mlir_sched.distribution = {choice_weights = [2.000000e+00, 1.000000e+00], choices = ["yes", "no"], kind = "categorical"}, mlir_sched.name = "peel"} -> !transform.any_param
    %value = transform.param.constant #config -> !transform.any_param
    transform.annotate %op#1 "lowering_config" = %value : !transform.any_op, !transform.any_param
    %value_0 = transform.param.constant #translation -> !transform.any_param
    transform.annotate %arg0 "translation_info" = %value_0 : !transform.any_op, !transform.any_param
    %value_1 = transform.param.constant "3b5fc4c687b9c8e3" -> !transform.any_param
    transform.annotate %arg0 "mlir_sched.applied" = %value_1 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

