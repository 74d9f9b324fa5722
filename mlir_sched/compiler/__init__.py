"""Compiles whole models the way a user does, and candidates in worker processes."""

from mlir_sched.compiler.compile_result import CompileResult
from mlir_sched.compiler.iree_compile import (
    CompiledProgram,
    ModelCompileError,
    Shown,
    compile_model,
    compile_showing,
    compile_to_bytes,
    compiling,
)
from mlir_sched.compiler.pool import CompilerPool
from mlir_sched.compiler.tuned_dispatch import TunedDispatch
from mlir_sched.compiler.worker_process import WorkerLimits
from mlir_sched.compiler.worker_set import WorkerSet

__all__ = [
    "CompileResult",
    "CompiledProgram",
    "CompilerPool",
    "ModelCompileError",
    "Shown",
    "TunedDispatch",
    "WorkerLimits",
    "WorkerSet",
    "compile_model",
    "compile_showing",
    "compile_to_bytes",
    "compiling",
]
