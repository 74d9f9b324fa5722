"""What a device would take for compiled candidates: their code is assembled, and a model estimates its time."""

from __future__ import annotations

from mlir_sched.compiler import CompileResult
from mlir_sched.errors import UserError
from mlir_sched.gpu_model.estimate import estimate
from mlir_sched.gpu_model.promises import why_broken
from mlir_sched.gpu_model.ptx import PtxError, device_code, read_kernel
from mlir_sched.gpu_model.ptxas import AssemblyError, assemble, find_assembler
from mlir_sched.targets.target import GpuResources, Target
from mlir_sched.tasks.task import Task


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
        if result.launch is None:
            raise PtxError("the number of workgroups depends on values of the program")
        code = device_code(result.vmfb)
        assembled = assemble(self._assembler, code, self._architecture)
        kernel = read_kernel(code)
        if script and assembled.spilled_bytes:
            raise AssemblyError(f"{assembled.spilled_bytes} bytes of registers are spilled to memory")
        if broken := why_broken(script, kernel):
            raise AssemblyError(broken)
        footprint = task.footprint_bytes
        return estimate(kernel, assembled, result.launch, self._device, footprint_bytes=footprint).seconds


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
