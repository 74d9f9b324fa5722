"""An AMD GPU through IREE's rocm backend: a device that need not be there, whose programs are compiled and not run.

IREE's wheel has all that code objects take, LLVM's AMDGPU backend and linker included. What tuning for such a device
needs besides is a description of this machine's device, or a model of its time; there is neither here yet.
"""

from mlir_sched.compiler.version import compiler_version
from mlir_sched.errors import UserError
from mlir_sched.targets.clock import EVENTS
from mlir_sched.targets.kind import DEFAULT, TargetKind
from mlir_sched.targets.resolved import gpu_limits, integer, resolve
from mlir_sched.targets.target import Driver, Target

NAME = "rocm"
DEVICE_FLAG = "--iree-hal-target-device=hip"
DEFAULT_ARCHITECTURE = "gfx942"


def detect(threads: int, device: str) -> Target:
    """Refuse to describe a device of this machine.

    Raises:
        UserError: Always; the message says what is missing.
    """
    del threads, device
    raise UserError("programs for the target rocm are compiled only: this machine's AMD GPUs are not described yet")


def absent(device: str) -> Target:
    """Return an AMD GPU that need not be there as a target, with the limits that IREE knows of it.

    Args:
        device: What ``--iree-rocm-target`` is given, an architecture or a product; :data:`DEFAULT_ARCHITECTURE` when
            empty.

    Raises:
        UserError: IREE does not know the device.
    """
    chosen = device or DEFAULT_ARCHITECTURE
    flags = (DEVICE_FLAG, f"--iree-rocm-target={chosen}")
    resolved = resolve(NAME, flags)
    vector_bytes = integer(resolved, "max_load_instruction_bits") // 8
    return Target(
        name=NAME,
        backend="rocm",
        driver=Driver("hip", EVENTS),
        flags=flags,
        description=resolved,
        compiler=compiler_version(),
        processor=f"an AMD GPU ({chosen})",
        cores=1,
        vector_bytes=vector_bytes,
        vector_registers=integer(resolved, "vgpr_space_bits") // 8 // vector_bytes,
        gpu=gpu_limits(resolved),
        machine=(("device", f"{chosen}, not there"),),
    )


def facts(target: Target) -> tuple[tuple[str, str], ...]:
    """Return the properties that decide the code of a ROCm target, as (name, value)."""
    return (("processor", target.processor),)


KIND = TargetKind(detect, {DEFAULT: (), "O3": ("--iree-opt-level=O3",)}, facts, absent=absent)
