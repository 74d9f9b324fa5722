"""What is compiled for: the backend, its compiler flags and the machine description that design spaces read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A backend with the machine it generates code for.

    Attributes:
        backend: IREE's target backend, e.g. ``llvm-cpu``.
        flags: ``iree-compile`` flags that select it.
        description: IREE's resolved executable target (CPU and features), as it stands in the compiled IR.
        compiler: IREE compiler version.
        cores: Physical cores that may be used.
        vector_bytes: Native vector register width.
        vector_registers: Architectural vector registers.
        l1_bytes, l2_bytes, l3_bytes: Data cache sizes seen by one core; 0 when unknown.
        stack_bytes: Largest sum of stack temporaries IREE accepts in a dispatch.
    """

    backend: str
    flags: tuple[str, ...]
    description: str
    compiler: str
    cores: int
    vector_bytes: int
    vector_registers: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    stack_bytes: int = 32768

    @property
    def key(self) -> str:
        """A short hash of what decides the generated code: backend, description, compiler and flags."""
        text = "\n".join((self.backend, self.description, self.compiler, *self.flags))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def vector_elements(self, element_bytes: int) -> int:
        """Return how many elements of a type one vector register holds, at least 1."""
        return max(1, self.vector_bytes // element_bytes)
