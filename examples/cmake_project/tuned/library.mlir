// A transform library in the form that `mlir-sched tune` writes, by hand and for one dispatch: matmul 64x64x64 f32.
//
// Matches: linalg.fill then linalg.matmul on tensor<64x64xf32>, nothing else in the dispatch.
// Choices: tile_m = 8 rows and tile_n = 32 columns of the register tile, tile_k = 2.
// Limits: llvm-cpu only. Last run with IREE 3.13.0.
module attributes { transform.with_named_sequence } {

  // One workgroup; i, j, k loops around an 8x32x2 tile that becomes vector code; lowered here to the end, so that the
  // compiler's own strategy is switched off (no_pipeline).
  transform.named_sequence @strategy_0(%func: !transform.any_op {transform.consumed}) {
    %tile_m = transform.param.constant 8 : i64
        {mlir_sched.name = "tile_m"} -> !transform.param<i64>
    %matmul = transform.structured.match ops{["linalg.matmul"]} in %func : (!transform.any_op) -> !transform.any_op
    %fill = transform.structured.match ops{["linalg.fill"]} in %func : (!transform.any_op) -> !transform.any_op
    %block, %forall = transform.structured.tile_using_forall %matmul tile_sizes [64, 64]
        (mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>])
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %block_fill, %forall_1 = transform.structured.fuse_into_containing_op %fill into %forall
        : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %rows, %loop_i = transform.structured.tile_using_for %block tile_sizes [%tile_m, 0, 0]
        : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tile, %loop_j = transform.structured.tile_using_for %rows tile_sizes [0, 32, 0]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %step, %loop_k = transform.structured.tile_using_for %tile tile_sizes [0, 0, 2]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fill_tile, %fill_i, %fill_j = transform.structured.tile_using_for %block_fill tile_sizes [8, 32]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %step : !transform.any_op
    transform.structured.vectorize %fill_tile : !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.vector.reduction_to_contract
      transform.apply_patterns.vector.transfer_permutation_patterns
      transform.apply_patterns.vector.sink_ops
    } : !transform.any_op
    transform.apply_patterns to %func {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.tensor.fold_tensor_subset_ops_into_vector_transfers
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %func : !transform.any_op
    %sliced = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %func
        : (!transform.any_op) -> !transform.any_op
    transform.iree.eliminate_empty_tensors %sliced : (!transform.any_op) -> ()
    %buffers = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %sliced
        : (!transform.any_op) -> !transform.any_op
    %loops = transform.apply_registered_pass "iree-codegen-remove-single-iteration-loop" to %buffers
        : (!transform.any_op) -> !transform.any_op
    %lowered = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %loops
        : (!transform.any_op) -> !transform.any_op
    %done = transform.param.constant #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
        -> !transform.any_param
    transform.annotate %lowered "translation_info" = %done : !transform.any_op, !transform.any_param
    %name = transform.param.constant "strategy_0" -> !transform.any_param
    transform.annotate %lowered "mlir_sched.applied" = %name : !transform.any_op, !transform.any_param
    transform.yield
  }

  // Fails on everything but the dispatch of strategy_0.
  transform.named_sequence @match_0(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
    transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
    %ins, %outs = transform.iree.match.cast_compatible_dag_from_root %op {
    ^bb0(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>):
      %zero = arith.constant 0.0 : f32
      %empty = tensor.empty() : tensor<64x64xf32>
      %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
      %product = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>)
                               outs(%filled : tensor<64x64xf32>) -> tensor<64x64xf32>
    } : (!transform.any_op) -> (!transform.any_value, !transform.any_value)
    transform.yield %op : !transform.any_op
  }

  // What the compiler runs on the whole program: nothing; it loads the library before any dispatch asks for it.
  transform.named_sequence @__transform_main(%program: !transform.any_op {transform.readonly}) {
    transform.yield
  }

  // What the compiler runs on every dispatch.
  transform.named_sequence @__kernel_config(%variant: !transform.any_op {transform.readonly}) {
    %found = transform.collect_matching @match_0 in %variant : (!transform.any_op) -> !transform.any_op
    transform.foreach %found : !transform.any_op {
    ^bb0(%op: !transform.any_op):
      %func = transform.get_parent_op %op <{op_name = "func.func", deduplicate}> : (!transform.any_op) -> !transform.any_op
      transform.include @strategy_0 failures(propagate) (%func) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
