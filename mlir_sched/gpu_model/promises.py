"""Instructions that a script requests but the compiled code lacks: IREE drops them silently.

Tensor cores, for example, need a vector contraction; where a pattern that makes it is missing from the script, the code
multiplies number by number, and the compiler ends without a word (IREE 3.13).
"""

from collections.abc import Mapping
from types import MappingProxyType

from mlir_sched.gpu_model.ptx import Kernel

PROMISED: Mapping[str, str] = MappingProxyType(
    {
        "transform.iree.create_async_groups": "cp.async",
        "transform.iree.vector.vector_to_mma_conversion": "mma.sync",
        "mma_kind = #iree_gpu.": "mma.sync",
    }
)
"""By what stands in a script, the start of the name of the PTX instruction that its code then has."""


def why_broken(script: str, kernel: Kernel) -> str:
    """Return which instructions a script asks for that its code does not have; empty when it has them all."""
    asked = dict.fromkeys(opcode for text, opcode in PROMISED.items() if text in script)
    missing = [opcode for opcode in asked if not kernel.count(opcode)]
    return f"the script asks for {' and '.join(missing)}, and its code has none" if missing else ""
