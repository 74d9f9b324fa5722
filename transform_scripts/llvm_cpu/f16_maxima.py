"""Maxima of f16 numbers, which IREE widens to f32 behind scripts, by a pass that knows numbers and no vectors.

Where scripts leave vectors of such maxima, the compiler rejects the dispatch or crashes. Scripts therefore run the pass
themselves, while the ops are still written for numbers. What combines the lanes of a reduction has to be vectorized in
front of the pass, because the vectorizer knows no reduction by widened maxima; such combinations stay
``vector.multi_reduction`` ops, which the pass leaves alone. Minima, and maxima that drop NaNs, need none of this.

Source: IREE 3.13, ``ExpandF16OpToF32Pass.cpp`` and the order of passes in ``LLVMCPU/Passes.cpp``.
"""

from __future__ import annotations

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.transform_scripts.schedule import Schedule

WIDENING = "iree-llvmcpu-expand-f16-op-to-f32"


def passes_before_vectors(dispatch: Dispatch) -> tuple[str, ...]:
    """Return the passes that have to run before ops of a dispatch become vectors."""
    return (WIDENING,) if any(map(takes_f16_maxima, dispatch.ops)) else ()


def takes_f16_maxima(op: LinalgOp) -> bool:
    """Say whether an op may take maxima of f16 numbers."""
    f16 = any(operand.tensor.element_type == "f16" for operand in (*op.inputs, *op.outputs))
    return f16 and "arith.maximumf" in op.body


def require_lanes(s: Schedule, op: LinalgOp, lanes: int) -> None:
    """Refuse a reduction by maxima of f16 numbers in one lane, whose combination would be no reduction any more."""
    s.require(lanes > 1 or not takes_f16_maxima(op), "maxima of f16 numbers without lanes become no vectors")
