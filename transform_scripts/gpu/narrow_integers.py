"""Integers narrower than 32 bits on GPUs: what IREE computes wrong with vectors of them.

On devices without such integers, IREE 3.13 takes them out of 32-bit words without their sign, and widens a vector of
them as it is: -94 becomes 162 (found on lavapipe, with vectors of 8 bytes; single bytes and matrix products are right).
IREE's own pipelines make such code, too. The numeric check finds it.
"""

from __future__ import annotations

from mlir_sched.payload import ELEMENT_BYTES, LinalgOp


def reads_narrow_integers(op: LinalgOp) -> bool:
    """Say whether an op reads integers narrower than 32 bits."""
    types = {operand.tensor.element_type for operand in op.inputs}
    return any(name.startswith("i") and ELEMENT_BYTES[name] < 4 for name in types)


def widens_narrow_integers(op: LinalgOp) -> bool:
    """Say whether an op reads integers narrower than 32 bits and widens signed integers."""
    return "arith.extsi" in op.body and reads_narrow_integers(op)
