"""Programs and scripts that the compiler tests share, and a minimal way to run a program."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mlir_sched.targets.target import LOCAL, Target
from mlir_sched.tasks import Model, extract
from mlir_sched.tasks.task import Task

FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)

TARGET = Target(
    "llvm-cpu", "llvm-cpu", LOCAL, FLAGS, "host", "3.13", "a CPU", 1, 64, 32, 32768, 1 << 20, 1 << 25, 32768
)

MATMUL = """
func.func @mm(%a: tensor<64x32xf32>, %b: tensor<32x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.matmul ins(%a, %b : tensor<64x32xf32>, tensor<32x64xf32>)
    outs(%f : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
"""

ACCUMULATE = """
func.func @acc(%a: tensor<16x8xf32>, %b: tensor<8x16xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<16x8xf32>, tensor<8x16xf32>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %r : tensor<16x16xf32>
}
"""

CONV1D = """
func.func @conv(%x: tensor<1x32x16xf32>, %w: tensor<3x16x16xf32>) -> tensor<1x30x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x30x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x30x16xf32>) -> tensor<1x30x16xf32>
  %r = linalg.conv_1d_nwc_wcf {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>}
    ins(%x, %w : tensor<1x32x16xf32>, tensor<3x16x16xf32>) outs(%f : tensor<1x30x16xf32>) -> tensor<1x30x16xf32>
  return %r : tensor<1x30x16xf32>
}
"""

ATTENTION = """
func.func @attend(%q: tensor<2x32x16xf32>, %k: tensor<2x16x32xf32>, %v: tensor<2x32x16xf32>) -> tensor<2x32x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x32x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<2x32x16xf32>, tensor<2x16x32xf32>)
    outs(%f : tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<2x32x32xf32>) outs(%e : tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  %e2 = tensor.empty() : tensor<2x32x16xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x32x16xf32>) -> tensor<2x32x16xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<2x32x32xf32>, tensor<2x32x16xf32>)
    outs(%f2 : tensor<2x32x16xf32>) -> tensor<2x32x16xf32>
  return %o : tensor<2x32x16xf32>
}
"""

TWICE = """
func.func @twice(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %x = linalg.matmul ins(%a, %b : tensor<16x16xf32>, tensor<16x16xf32>)
    outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
  %y = linalg.matmul ins(%x, %b : tensor<16x16xf32>, tensor<16x16xf32>)
    outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}
"""

LOOP = """
func.func @loop(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%x = %a) -> tensor<16x16xf32> {
    %e = tensor.empty() : tensor<16x16xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
    %m = linalg.matmul ins(%x, %b : tensor<16x16xf32>, tensor<16x16xf32>)
    outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
    scf.yield %m : tensor<16x16xf32>
  }
  return %r : tensor<16x16xf32>
}
"""

TORCH = """
func.func @main(%a: !torch.vtensor<[4,8],f32>, %b: !torch.vtensor<[8,16],f32>) -> !torch.vtensor<[4,16],f32>
    attributes {torch.assume_strict_symbolic_shapes} {
  %0 = torch.aten.mm %a, %b : !torch.vtensor<[4,8],f32>, !torch.vtensor<[8,16],f32> -> !torch.vtensor<[4,16],f32>
  return %0 : !torch.vtensor<[4,16],f32>
}
"""

TILE = """
    %mm = transform.structured.match ops{["linalg.matmul"]} in %f : (!transform.any_op) -> !transform.any_op
    %fill = transform.structured.match ops{["linalg.fill"]} in %f : (!transform.any_op) -> !transform.any_op
    %t, %forall = transform.structured.tile_using_forall %mm tile_sizes [32, 32]
      (mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>])
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %fused, %new = transform.structured.fuse_into_containing_op %fill into %forall
      : (!transform.any_op, !transform.any_op) -> (!transform.any_op, !transform.any_op)
    %t1, %l1, %l2 = transform.structured.tile_using_for %t tile_sizes [8, 32, 0]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %t2, %l3 = transform.structured.tile_using_for %t1 tile_sizes [0, 0, 1]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
    %t3, %l4, %l5 = transform.structured.tile_using_for %fused tile_sizes [8, 32]
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
"""

VECTORIZE = """
    transform.structured.vectorize %t2 : !transform.any_op
    transform.structured.vectorize %t3 : !transform.any_op
"""

LOWER = """
    transform.apply_patterns to %f {
      transform.apply_patterns.linalg.tiling_canonicalization
      transform.apply_patterns.tensor.fold_tensor_empty
      transform.apply_patterns.tensor.fold_tensor_subset_ops_into_vector_transfers
      transform.apply_patterns.canonicalization
    } : !transform.any_op
    transform.apply_cse to %f : !transform.any_op
    %f1 = transform.apply_registered_pass "iree-codegen-optimize-tensor-insert-extract-slices" to %f
      : (!transform.any_op) -> !transform.any_op
    transform.iree.eliminate_empty_tensors %f1 : (!transform.any_op) -> ()
    %f2 = transform.apply_registered_pass "iree-codegen-llvmcpu-bufferization-pipeline" to %f1
      : (!transform.any_op) -> !transform.any_op
    %f3 = transform.apply_registered_pass "iree-codegen-llvmcpu-vector-lowering-pipeline" to %f2
      : (!transform.any_op) -> !transform.any_op
"""


def no_pipeline(handle: str) -> str:
    """Return the op pair that tells IREE that the code is done."""
    return f"""
    %info = transform.param.constant #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
      -> !transform.any_param
    transform.annotate {handle} "translation_info" = %info : !transform.any_op, !transform.any_param
"""


def applied(handle: str) -> str:
    """Return the op that marks the function."""
    return f"""
    %name = transform.param.constant "strategy" -> !transform.any_param
    transform.annotate {handle} "mlir_sched.applied" = %name : !transform.any_op, !transform.any_param
"""


def script(*body: str, argument: str = "consumed", symbol: str = "strategy") -> str:
    """Return a script module with the given sequence body."""
    return f"""module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @{symbol}(%f: !transform.any_op {{transform.{argument}}}) {{
    {"".join(body)}
    transform.yield
  }}
}}
"""


GOOD_SCRIPT = script(TILE, VECTORIZE, LOWER, no_pipeline("%f3"), applied("%f3"))


def lowering_config_script(op: str, config: str) -> str:
    """Return a script that only chooses a lowering_config for one op and IREE's double tiling pipeline."""
    return script(
        f"""
    %op = transform.structured.match ops{{["{op}"]}} in %f : (!transform.any_op) -> !transform.any_op
    %config = transform.param.constant {config} -> !transform.any_param
    transform.annotate %op "lowering_config" = %config : !transform.any_op, !transform.any_param
    %info = transform.param.constant
      #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>> -> !transform.any_param
    transform.annotate %f "translation_info" = %info : !transform.any_op, !transform.any_param
""",
        applied("%f"),
        argument="readonly",
    )


MATMUL_CONFIG = (
    "#iree_cpu.lowering_config<distribution = [32, 32, 0], vector_common_parallel = [8, 32, 0], "
    "vector_reduction = [0, 0, 4]>"
)


CRASH_SCRIPT = script(
    """
    %r = transform.foreach_match in %f @is_matmul -> @rewrite : (!transform.any_op) -> !transform.any_op
""",
    applied("%r"),
).replace(
    "  transform.named_sequence @strategy",
    f"""  transform.named_sequence @is_matmul(%op: !transform.any_op {{transform.readonly}}) -> !transform.any_op {{
    transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
    transform.yield %op : !transform.any_op
  }}
  transform.named_sequence @rewrite(%op: !transform.any_op {{transform.consumed}}) {{
    %f = transform.get_parent_op %op <{{op_name = "func.func"}}> : (!transform.any_op) -> !transform.any_op
    {TILE}{VECTORIZE}{LOWER}{no_pipeline("%f3")}
    transform.yield
  }}
  transform.named_sequence @strategy""",
)
"""Crashes IREE 3.13: the action of a foreach_match rewrites what is being matched."""

BIG_MATMUL = MATMUL.replace("64x32", "512x512").replace("32x64", "512x512").replace("64x64", "512x512")

ENDLESS_SCRIPT = script(
    """
    %mm = transform.structured.match ops{["linalg.matmul"]} in %f : (!transform.any_op) -> !transform.any_op
    %fill = transform.structured.match ops{["linalg.fill"]} in %f : (!transform.any_op) -> !transform.any_op
    transform.structured.vectorize %mm : !transform.any_op
    transform.structured.vectorize %fill : !transform.any_op
""",
    LOWER,
    no_pipeline("%f3"),
    applied("%f3"),
)
"""Vectorizes a whole matrix multiplication without tiling: on BIG_MATMUL, minutes of work and gigabytes of memory."""


def model_of(folder: Path, text: str) -> Model:
    """Return the tasks of a program given as text."""
    path = folder / "model.mlir"
    path.write_text(text)
    return extract(path, TARGET)


def task_of(folder: Path, text: str) -> Task:
    """Return the only task of a program given as text."""
    (task,) = model_of(folder, text).tasks
    return task


def run_program(
    vmfb: bytes, entry: str, inputs: list[np.ndarray], out_shapes: list[tuple[int, ...]]
) -> list[np.ndarray]:
    """Run an f32 task program twice on poisoned outputs and return its inputs and outputs as they are then."""
    import iree.runtime as rt

    device = rt.get_driver("local-sync").create_default_device()
    instance = rt.VmInstance()
    module = rt.VmModule.copy_buffer(instance, vmfb)
    context = rt.VmContext(instance, [rt.create_hal_module(instance, device), module])
    arrays = [*inputs, *(np.full(shape, np.nan, np.float32) for shape in out_shapes)]
    views = [
        device.allocator.allocate_buffer_copy(
            memory_type=rt.MemoryType.DEVICE_LOCAL,
            allowed_usage=rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING,
            device=device,
            buffer=array,
            element_type=rt.HalElementType.FLOAT_32,
        )
        for array in arrays
    ]
    for _ in range(2):
        arguments, results = rt.VmVariantList(len(views)), rt.VmVariantList(1)
        for view in views:
            arguments.push_ref(view)
        context.invoke(module.lookup_function(entry), arguments, results)
    return [np.array(rt.DeviceArray(device, view, implicit_host_transfer=True).to_host()) for view in views]
