"""Assembles PTX by NVIDIA's assembler, which needs no device, and reads what the code takes of one."""

import re
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mlir_sched.errors import MlirSchedError, UserError
from mlir_sched.processes.executable import run_program
from mlir_sched.processes.limits import ChildError, ChildLimits
from mlir_sched.processes.temporary import temporary_folder

INSTALL = "pip install 'mlir-sched[cuda]'"
_PACKAGES = ("nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas")
"""Where the PyPI packages nvidia-cuda-nvcc (CUDA 13) and nvidia-cuda-nvcc-cu12 put the assembler."""
_LIMITS = ChildLimits(timeout_s=60.0, memory_bytes=4 << 30)
_REGISTERS = re.compile(rb"Used (\d+) registers")
_SPILLS = re.compile(rb"(\d+) bytes spill stores, (\d+) bytes spill loads")
_WARNING = re.compile(rb"warning\s*: (.*)")


class AssemblyError(MlirSchedError):
    """The assembler refuses code, or warns about it; the message is the assembler's."""


@dataclass(frozen=True)
class Resources:
    """What assembled code takes of a device.

    Attributes:
        registers: 32-bit registers of a thread.
        spilled_bytes: Bytes of stores to and loads from memory for values that found no register, summed over the code.
    """

    registers: int
    spilled_bytes: int


def find_assembler() -> Path:
    """Return the path of ptxas: that of a Python package, else the first one in ``PATH``.

    Raises:
        UserError: There is none; the message says how to install one.
    """
    spec = find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for package in _PACKAGES:
            if (path := Path(folder).parent / package).is_file():
                return path
    if found := shutil.which("ptxas"):
        return Path(found)
    raise UserError(f"NVIDIA's assembler ptxas is not installed; {INSTALL}")


def assemble(assembler: Path, code: str, architecture: str) -> Resources:
    """Assemble the PTX of one kernel.

    Args:
        architecture: What to assemble for, e.g. ``sm_90``.

    Raises:
        AssemblyError: The assembler refuses the code, warns about it, or takes too long.
    """
    with temporary_folder() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(code)
        command = [str(assembler), "-v", f"-arch={architecture}", str(source), "-o", str(source.with_suffix(".cubin"))]
        try:
            done = run_program(command, _LIMITS, poll_s=0.01)
        except ChildError as error:
            raise AssemblyError(f"ptxas {error}") from None
    log = done.output + done.errors
    if done.code != 0:
        raise AssemblyError(f"ptxas refuses the code: {log.decode(errors='replace').strip()[:600]}")
    if warning := _WARNING.search(log):
        raise AssemblyError(f"ptxas warns: {warning.group(1).decode(errors='replace')}")
    registers, spills = _REGISTERS.search(log), _SPILLS.search(log)
    if registers is None:
        raise AssemblyError("ptxas does not tell how many registers the code takes")
    return Resources(int(registers.group(1)), sum(map(int, spills.groups())) if spills else 0)
