#translation = #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
module attributes {transform.with_named_sequence} {
  util.func private @avx512vnni_e1ab47f3910c(%arg0: tensor<2x2x4xi8>, %arg1: tensor<2x16x4xi8>, %arg2: tensor<2x16xi32>) -> tensor<2x16xi32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c0_i8 = arith.constant 0 : i8
    %c0_i32 = arith.constant 0 : i32
    %c0_0 = arith.constant 0 : index
    %c1_1 = arith.constant 1 : index
    %c0_2 = arith.constant 0 : index
    %c0_3 = arith.constant 0 : index
    %cst = arith.constant dense<-128> : vector<64xi8>
    %extracted_slice = tensor.extract_slice %arg0[0, 0, 0] [2, 2, 4] [1, 1, 1] : tensor<2x2x4xi8> to tensor<2x2x4xi8>
    %extracted_slice_4 = tensor.extract_slice %arg1[0, 0, 0] [2, 16, 4] [1, 1, 1] : tensor<2x16x4xi8> to tensor<2x16x4xi8>
    %collapsed = tensor.collapse_shape %extracted_slice_4 [[0], [1, 2]] : tensor<2x16x4xi8> into tensor<2x64xi8>
    %extracted_slice_5 = tensor.extract_slice %arg2[0, 0] [2, 16] [1, 1] : tensor<2x16xi32> to tensor<2x16xi32>
    %0 = vector.transfer_read %extracted_slice_5[%c0_0, %c0_2], %c0_i32 {in_bounds = [true]} : tensor<2x16xi32>, vector<16xi32>
    %1 = vector.transfer_read %extracted_slice_5[%c1_1, %c0_2], %c0_i32 {in_bounds = [true]} : tensor<2x16xi32>, vector<16xi32>
    %cst_6 = arith.constant dense<0> : vector<16xi32>
    %c64 = arith.constant 64 : index
    %c8 = arith.constant 8 : index
    %collapsed_7 = tensor.collapse_shape %extracted_slice [[0], [1, 2]] : tensor<2x2x4xi8> into tensor<2x8xi8>
    %2:2 = scf.for %arg3 = %c0 to %c8 step %c64 iter_args(%arg4 = %cst_6, %arg5 = %cst_6) -> (vector<16xi32>, vector<16xi32>) {
      %12 = vector.transfer_read %collapsed_7[%c0_0, %arg3], %c0_i8 : tensor<2x8xi8>, vector<64xi8>
      %13 = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%arg4, %cst, %12) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
      %14 = vector.transfer_read %collapsed_7[%c1_1, %arg3], %c0_i8 : tensor<2x8xi8>, vector<64xi8>
      %15 = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%arg5, %cst, %14) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
      scf.yield %13, %15 : vector<16xi32>, vector<16xi32>
    }
    %3 = vector.reduction <add>, %2#0 : vector<16xi32> into i32
    %4 = vector.broadcast %3 : i32 to vector<16xi32>
    %5 = vector.reduction <add>, %2#1 : vector<16xi32> into i32
    %6 = vector.broadcast %5 : i32 to vector<16xi32>
    %7 = arith.subi %0, %4 : vector<16xi32>
    %8 = arith.subi %1, %6 : vector<16xi32>
    %9:2 = scf.for %arg3 = %c0 to %c2 step %c1 iter_args(%arg4 = %7, %arg5 = %8) -> (vector<16xi32>, vector<16xi32>) {
      %12 = vector.transfer_read %collapsed[%arg3, %c0_3], %c0_i8 {in_bounds = [true]} : tensor<2x64xi8>, vector<64xi8>
      %13 = arith.xori %12, %cst : vector<64xi8>
      %14 = vector.transfer_read %extracted_slice[%c0_0, %arg3, %c0], %c0_i8 {in_bounds = [true]} : tensor<2x2x4xi8>, vector<4xi8>
      %15 = vector.bitcast %14 : vector<4xi8> to vector<1xi32>
      %16 = vector.extract %15[0] : i32 from vector<1xi32>
      %17 = vector.broadcast %16 : i32 to vector<16xi32>
      %18 = vector.bitcast %17 : vector<16xi32> to vector<64xi8>
      %19 = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%arg4, %13, %18) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
      %20 = vector.transfer_read %extracted_slice[%c1_1, %arg3, %c0], %c0_i8 {in_bounds = [true]} : tensor<2x2x4xi8>, vector<4xi8>
      %21 = vector.bitcast %20 : vector<4xi8> to vector<1xi32>
      %22 = vector.extract %21[0] : i32 from vector<1xi32>
      %23 = vector.broadcast %22 : i32 to vector<16xi32>
      %24 = vector.bitcast %23 : vector<16xi32> to vector<64xi8>
      %25 = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%arg5, %13, %24) : (vector<16xi32>, vector<64xi8>, vector<64xi8>) -> vector<16xi32>
      scf.yield %19, %25 : vector<16xi32>, vector<16xi32>
    }
    %10 = vector.transfer_write %9#0, %extracted_slice_5[%c0_0, %c0_2] {in_bounds = [true]} : vector<16xi32>, tensor<2x16xi32>
    %11 = vector.transfer_write %9#1, %10[%c1_1, %c0_2] {in_bounds = [true]} : vector<16xi32>, tensor<2x16xi32>
    %inserted_slice = tensor.insert_slice %11 into %arg2[0, 0] [2, 16] [1, 1] : tensor<2x16xi32> into tensor<2x16xi32>
    util.return %inserted_slice : tensor<2x16xi32>
  }
  transform.named_sequence @strategy(%arg0: !transform.any_op {transform.consumed}) attributes {mlir_sched.sketch = "dot_product"} {
    %linalg_ops = transform.structured.match interface{LinalgOp} in %arg0 : (!transform.any_op) -> !transform.any_op
    %op:2 = transform.split_handle %linalg_ops : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %workgroup_0_0 = transform.param.constant 16 : i64 {mlir_sched.distribution = {extent = 16 : i64, kind = "perfect_tile", levels = 1 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_0"} -> !transform.param<i64>
    %workgroup_1_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 32 : i64, kind = "perfect_tile", levels = 1 : i64, multiple_of = 16 : i64, size_powers = [5.000000e-01]}, mlir_sched.element = 0 : i64, mlir_sched.name = "workgroup_1"} -> !transform.param<i64>
    %tiled, %tiled_0 = transform.structured.tile_using_forall %op#1 tile_sizes [%workgroup_0_0, %workgroup_1_0, 0](mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>]) : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %fused, %fused_1 = transform.structured.fuse_into_containing_op %op#0 into %tiled_0 : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %columns_0 = transform.param.constant 32 : i64 {mlir_sched.distribution = {extent = 32 : i64, kind = "perfect_tile", levels = 2 : i64, max_innermost = 128 : i64, multiple_of = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %columns_1 = transform.param.constant 16 : i64 {mlir_sched.element = 1 : i64, mlir_sched.name = "columns"} -> !transform.param<i64>
    %rows_0 = transform.param.constant 2 : i64 {mlir_sched.distribution = {extent = 16 : i64, kind = "perfect_tile", levels = 1 : i64, max_innermost = 16 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "rows"} -> !transform.param<i64>
    %reduction_0 = transform.param.constant 8 : i64 {mlir_sched.distribution = {extent = 24 : i64, kind = "perfect_tile", levels = 1 : i64, multiple_of = 4 : i64}, mlir_sched.element = 0 : i64, mlir_sched.name = "reduction"} -> !transform.param<i64>
    %register_order = transform.param.constant ["rows", "columns"] {mlir_sched.distribution = {items = ["rows", "columns"], kind = "permutation"}, mlir_sched.name = "register_order"} -> !transform.any_param
    %fused_2, %fused_3 = transform.structured.fuse %tiled tile_sizes [0, %columns_0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %ops_4 = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %tiled_5, %tiled_6:2 = transform.structured.tile_using_for %ops_4 tile_sizes [1, %columns_1] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %ops_7 = transform.structured.match ops{["linalg.fill"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %ops_7 : !transform.any_op
    %tiled_8, %tiled_9 = transform.structured.tile_using_for %ops tile_sizes [0, 0, %reduction_0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %packed = transform.structured.pack %tiled_8 packed_sizes = [0, 0, 4] : (!transform.any_op) -> !transform.op<"linalg.generic">
    %packed_10 = transform.cast %packed : !transform.op<"linalg.generic"> to !transform.any_op
    %pack = transform.get_producer_of_operand %packed_10[1] : (!transform.any_op) -> !transform.any_op
    %packed_11, %packed_12, %packed_13 = transform.structured.pack_transpose %pack with_compute_op(%packed_10) outer_perm = [1, 0] : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %ops_14 = transform.structured.match ops{["linalg.pack"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %pack_15 = transform.cast %ops_14 : !transform.any_op to !transform.op<"linalg.pack">
    %lowered, %lowered_16, %lowered_17 = transform.structured.lower_pack %pack_15 : (!transform.op<"linalg.pack">) -> (!transform.op<"tensor.pad">, !transform.op<"tensor.expand_shape">, !transform.op<"linalg.transpose">)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops_18 = transform.structured.match ops{["linalg.transpose"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %tiled_19, %tiled_20:2 = transform.structured.tile_using_for %ops_18 tile_sizes [1, 16] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.structured.vectorize %tiled_19 : !transform.any_op
    %tiled_21, %tiled_22 = transform.structured.tile_using_for %packed_11 tile_sizes [%rows_0, 0, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %tiled_23, %tiled_24 = transform.structured.tile_using_for %tiled_21 tile_sizes [0, %columns_1, 0] : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    transform.apply_patterns to %arg0 {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.scf.for_loop_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %arg0 : !transform.any_op
    %ops_25 = transform.structured.match ops{["linalg.generic"]} in %arg0 : (!transform.any_op) -> !transform.any_op
    %body = transform.util.lookup_nearest_symbol_from_self @avx512vnni_e1ab47f3910c : !transform.any_op
    %operands = transform.get_operand %ops_25[all] : (!transform.any_op) -> !transform.any_value
    %result = transform.get_result %ops_25[all] : (!transform.any_op) -> !transform.any_value
    transform.util.cast_and_call inline_call %body(%operands) -> %result after %ops_25 : (!transform.any_op, !transform.any_value, !transform.any_value, !transform.any_op) -> ()
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
    %function_26 = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %function : (!transform.any_op) -> !transform.any_op
    %function_27 = transform.apply_registered_pass "iree-codegen-remove-single-iteration-loop" to %function_26 : (!transform.any_op) -> !transform.any_op
    %function_28 = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %function_27 : (!transform.any_op) -> !transform.any_op
    %value = transform.param.constant #translation -> !transform.any_param
    transform.annotate %function_28 "translation_info" = %value : !transform.any_op, !transform.any_param
    %value_29 = transform.param.constant "62712a295be39457" -> !transform.any_param
    transform.annotate %function_28 "mlir_sched.applied" = %value_29 : !transform.any_op, !transform.any_param
    transform.yield 
  }
}

