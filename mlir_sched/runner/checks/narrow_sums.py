"""Long sums in narrow floats, on which two right programs need not agree: why a wrong result may be nobody's fault."""

from __future__ import annotations

from collections.abc import Iterable

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.runner.checks.exactness import SIGNIFICAND_BITS, has_random_signs, reduction_length

LARGEST = {"f16": 65504.0}
"""Largest numbers of types that sums of ordinary numbers exceed (IEEE 754)."""


def why_sums_differ(dispatches: Iterable[Dispatch]) -> str:
    """Return what is to be said of the longest sum in f16 or bf16 whose result hangs on the order of its additions.

    A sum of ``n`` terms of one sign and of like magnitude stops growing at ``2^(p + 1)`` terms, with ``p`` bits in the
    significand: a term is less than half of the distance between two numbers then. Sums of products of two inputs are
    not meant, as their signs are as good as random.

    Args:
        dispatches: The dispatches of a program.
    """
    found = [
        (reduction_length(op), op.outputs[0].tensor.element_type)
        for dispatch in dispatches
        for op in dispatch.ops
        if _stops_growing(op)
    ]
    if not found:
        return ""
    terms, kind = max(found)
    overflow = f"overflow {kind} (at most {LARGEST[kind]:.0f}) or " if terms > LARGEST.get(kind, terms) else ""
    return f"sums of {terms} terms in {kind} {overflow}stop growing: their results hang on the order of additions"


def _stops_growing(op: LinalgOp) -> bool:
    kind = op.outputs[0].tensor.element_type
    if kind not in ("f16", "bf16") or op.kind == OpKind.FILL or not op.reduces or not _adds(op) or has_random_signs(op):
        return False
    return reduction_length(op) > 1 << (SIGNIFICAND_BITS[kind] + 1)


def _adds(op: LinalgOp) -> bool:
    return any(name in ("arith.addf", "math.fma") for name in op.body)
