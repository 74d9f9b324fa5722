"""The variants that leave the others no chance: a layout, or a form of attention, that makes a program far faster."""

from __future__ import annotations

from mlir_sched.payload import LinalgOp
from mlir_sched.program.variant import ATTENTION, LAYOUT, BuiltVariant

SETTLING = (LAYOUT, ATTENTION)
"""The variants that may leave all others but their refinements no chance; they are compiled right after the default."""
SETTLED = "the program is far faster with {}"
"""Why variants other than such a variant and its refinements are not compiled then."""
FAR_FASTER = 2.0
"""Ratio to the default from which one of :data:`SETTLING` settles that: the others start from the default's layout
(MobileNet-V2 4.7 and ResNet-50 5.7 times as fast, without scripts; no other variant is above 1.4), or have attentions
that take more time than the whole decomposed program."""
CLEARLY_FASTER = 1.02
"""Ratio above which a variant is faster than the default: a gain that noise does not explain."""
CHANNELS_FIRST = 0.3
"""Share of the default's time in convolutions with channels first from which :data:`CLEARLY_FASTER` is enough for the
layout: scripts make most of such a program, and what it takes before says little."""


def is_far_faster(name: str, ratio: float, default: BuiltVariant) -> bool:
    """Say whether a variant leaves all others but its refinements no chance.

    Args:
        name: Name of the variant.
        ratio: How many times as fast as the default the variant is without scripts.
        default: The default variant, with its profile if there is one.
    """
    by_layout = name == LAYOUT and channels_first_share(default) >= CHANNELS_FIRST
    return ratio >= (CLEARLY_FASTER if by_layout else FAR_FASTER)


def channels_first_share(built: BuiltVariant) -> float:
    """Return the share of a variant's time, 0 to 1, in convolutions and poolings whose channels are not innermost.

    Returns:
        0 for a variant without a profile.
    """
    if built.profile is None:
        return 0.0
    shares = built.profile.shares(task.name for task in built.model.tasks)
    dispatches = [(task.name, task.dispatch) for task in built.model.tasks if task.dispatch is not None]
    return sum(shares[name] for name, dispatch in dispatches if any(map(_slides_innermost, dispatch.ops)))


def _slides_innermost(op: LinalgOp) -> bool:
    """Say whether the windows of a convolution slide along the contiguous dimension of its result."""
    return bool(op.reduction_dims) and any(op.contiguous_dim in expr.dims for expr in op.sums_of_loops)
