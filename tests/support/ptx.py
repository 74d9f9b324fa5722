"""PTX of programs compiled for CUDA, and its assembly, as tests ask for them."""

from __future__ import annotations

from collections import Counter

from mlir_sched.compiler.compile_result import CompileResult
from mlir_sched.gpu_model.ptx import device_code, read_kernel
from mlir_sched.gpu_model.ptxas import Resources, assemble, find_assembler


def ptx_of(result: CompileResult) -> str:
    """Return the PTX of a compiled program with one kernel."""
    assert result.vmfb is not None, result.failure
    return device_code(result.vmfb)


def opcodes(ptx: str) -> Counter[str]:
    """Return how often each opcode with its modifiers stands in a kernel."""
    return Counter(instruction.opcode for instruction in read_kernel(ptx).instructions)


def assembled(ptx: str, architecture: str) -> Resources:
    """Assemble a kernel; a warning is an error."""
    return assemble(find_assembler(), ptx, architecture)
