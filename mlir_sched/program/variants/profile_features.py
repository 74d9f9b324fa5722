"""Numbers that say where the time of an untuned program goes: what predictions of its variants are made from."""

import math
from collections.abc import Iterable

from mlir_sched.payload import LinalgOp, OpKind
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.early_decisions import attention_share, channels_first_share
from mlir_sched.targets.target import Target

DEPTHWISE, NOT_LINALG = "depthwise", "not linalg"
"""Families of dispatches beside the kinds of their main ops."""
FAMILIES = (*(str(kind) for kind in OpKind), DEPTHWISE, NOT_LINALG)
FEATURES = (
    *(f"share of {family}" for family in FAMILIES),
    "share of channels first",
    "share of attention",
    "largest convolution",
    "largest product",
    "weights over L2",
    "threads",
)
"""Names of the numbers."""


def profile_features(default: BuiltVariant, target: Target) -> dict[str, float]:
    """Return numbers on a program by the names in :data:`FEATURES`; none without a profile.

    Shares are those of the profile's time, 0 to 1. Sizes of the largest ops are binary logarithms of their scalar
    operations, 0 for none, and so is that of the bytes of all weights over those of a core's second cache, at least 0.

    Args:
        default: The program as plain ``iree-compile`` makes it.
        target: The machine, with the threads of the run.
    """
    if default.profile is None:
        return {}
    shares, tasks = default.profile.shares(task.name for task in default.model.tasks), default.model.tasks
    family = {task.name: _family(task.dispatch.main_op) if task.dispatch else NOT_LINALG for task in tasks}
    ops = [op for task in tasks if task.dispatch for op in task.dispatch.ops]
    numbers = (
        *(sum(shares[name] for name, own in family.items() if own == each) for each in FAMILIES),
        channels_first_share(default),
        attention_share(default),
        _largest(op for op in ops if op.kind is OpKind.CONVOLUTION),
        _largest(op for op in ops if op.kind is OpKind.CONTRACTION),
        math.log2(max(1.0, default.model.weight_bytes / target.l2_bytes)) if target.l2_bytes else 0.0,
        target.cores,
    )
    return {name: float(number) for name, number in zip(FEATURES, numbers, strict=True)}


def _family(op: LinalgOp) -> str:
    is_depthwise = op.kind is OpKind.CONVOLUTION and not op.convolution_dims.input_channel
    return DEPTHWISE if is_depthwise else str(op.kind)


def _largest(ops: Iterable[LinalgOp]) -> float:
    return math.log2(max([1, *(op.scalar_ops for op in ops)]))
