"""What a device would take for compiled candidates: their code is assembled, and a model estimates its time.

IREE silently drops instructions that a script requests. Tensor cores, for example, need a vector contraction; where a
pattern that makes it is missing from the script, the code multiplies number by number, and the compiler ends without a
word (IREE 3.13).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mlir_sched.compiler import CompileResult
from mlir_sched.errors import UserError
from mlir_sched.gpu_model.estimate import estimate
from mlir_sched.gpu_model.ptx import Kernel, PtxError, device_code, read_kernel
from mlir_sched.gpu_model.ptxas import AssemblyError, assemble, find_assembler
from mlir_sched.targets.target import GpuResources, Target
from mlir_sched.tasks.task import Task

REQUESTED: Mapping[str, str] = MappingProxyType(
    {
        "transform.iree.create_async_groups": "cp.async",
        "transform.iree.vector.vector_to_mma_conversion": "mma.sync",
        "mma_kind = #iree_gpu.": "mma.sync",
    }
)
"""By what stands in a script, the start of the name of the PTX instruction that its code then has."""


class GpuTimes:
    """The times that :mod:`mlir_sched.gpu_model` estimates for a target's device.

    Raises:
        UserError: The assembler is not installed, or the target has no model.
    """

    def __init__(self, target: Target) -> None:
        self._device, self._architecture = modelled_device(target), target.assembler
        self._assembler = find_assembler()

    @classmethod
    def of(cls, target: Target) -> GpuTimes | None:
        """Return the estimates for a target, or None where it has no model or the assembler is not installed."""
        try:
            return cls(target) if target.assembler else None
        except UserError:
            return None

    def seconds(self, task: Task, result: CompileResult, script: str = "") -> float:
        """Return the estimated time of one call; without a script, that of the untuned code.

        Raises:
            AssemblyError: The assembler refuses the code, or the code of a script spills registers or lacks
                instructions that the script asks for.
            PtxError: The code or its launch cannot be read.
        """
        assert result.vmfb is not None
        code = device_code(result.vmfb)
        kernel = read_kernel(code)
        if result.launch is None:
            raise PtxError("the number of workgroups depends on values of the program")
        assembled = assemble(self._assembler, code, self._architecture)
        if script and assembled.spilled_bytes:
            raise AssemblyError(f"{assembled.spilled_bytes} bytes of registers are spilled to memory")
        if dropped := why_dropped(script, kernel):
            raise AssemblyError(dropped)
        footprint = task.footprint_bytes
        return estimate(kernel, assembled, result.launch, self._device, footprint_bytes=footprint).seconds


def why_dropped(script: str, kernel: Kernel) -> str:
    """Return which instructions a script asks for that its code does not have; empty when it has them all."""
    asked = dict.fromkeys(opcode for text, opcode in REQUESTED.items() if text in script)
    missing = [opcode for opcode in asked if not kernel.count(opcode)]
    return f"the script asks for {' and '.join(missing)}, and its code has none" if missing else ""


def modelled_device(target: Target) -> GpuResources:
    """Return what the model of time knows of a target's device.

    Raises:
        UserError: There is no model of such devices.
    """
    if target.gpu_resources is None:
        raise UserError(
            f"candidates for the target {target.name} can be compiled, but there is no model of its devices by which "
            "they could be ranked; there is one for cuda"
        )
    return target.gpu_resources
