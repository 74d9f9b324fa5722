"""Early decisions: a layout, or a form of attention, that dominates all other variants of a program."""

from collections.abc import Callable, Collection, Sequence

from mlir_sched.payload import LinalgOp, OpKind, TensorSpec
from mlir_sched.program import rewrites
from mlir_sched.program.plan import Plan
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.tasks.task import Task

LAYOUT, ATTENTION = Plan(rewrites.LAYOUT).name, Plan(rewrites.ATTENTION).name
DECIDED_EARLY = (LAYOUT, ATTENTION)
"""Names of the variants that may dominate all others but their refinements, compiled right after the default."""
DOMINATED = "the program is far faster with {}"
"""Why variants other than a dominant one and its refinements are not compiled."""
FAR_FASTER = 2.0
"""Ratio to the default from which a variant dominates: above that of any variant that keeps the default's layout and
attentions, and below that of the layout in networks of convolutions, all without scripts."""
CLEARLY_FASTER = 1.02
"""Ratio above which a variant is faster than the default: a gain that noise does not explain."""
REPLACED_SHARE = 0.3
"""Least share of the default's time in what a variant replaces for which :data:`CLEARLY_FASTER` is enough: convolutions
with channels first, or attentions, whose dispatches have no scripts. Scripts make most of such a program, and what it
takes before says little."""
_ATTENTION_OP = "iree_linalg_ext.attention"


def is_far_faster(name: str, ratio: float, default: BuiltVariant) -> bool:
    """Say whether a variant dominates all others but its refinements.

    Args:
        ratio: How many times as fast as the default the variant is without scripts.
        default: The default variant, with its profile if there is one.
    """
    return ratio >= (CLEARLY_FASTER if name in favoured_by_profile(default, DECIDED_EARLY) else FAR_FASTER)


def favoured_by_profile(default: BuiltVariant, names: Collection[str]) -> list[str]:
    """Return the variants that the default's profile speaks for, that of most time first.

    Args:
        names: Those of :data:`DECIDED_EARLY` that the program has.
    """
    shares = {LAYOUT: channels_first_share(default), ATTENTION: attention_share(default)}
    favoured = [name for name in names if shares.get(name, 0.0) >= REPLACED_SHARE]
    return sorted(favoured, key=shares.__getitem__, reverse=True)


def channels_first_share(built: BuiltVariant) -> float:
    """Return the share of a variant's time, 0 to 1, in convolutions and poolings with channels not innermost.

    It is 0 for a variant without a profile, as that of :func:`attention_share`.
    """
    return _share(built, _is_channels_first)


def attention_share(built: BuiltVariant) -> float:
    """Return the share of a variant's time, 0 to 1, in attentions."""
    return _share(built, lambda task: _ATTENTION_OP in task.source)


def _share(built: BuiltVariant, counts: Callable[[Task], bool]) -> float:
    if built.profile is None:
        return 0.0
    shares = built.profile.shares(task.name for task in built.model.tasks)
    return sum(shares[task.name] for task in built.model.tasks if counts(task))


def _is_channels_first(task: Task) -> bool:
    constants = [task.inputs[position] for position in task.constants]
    ops = task.dispatch.ops if task.dispatch else ()
    return any(_slides_innermost(op) or _multiplies_pixels(op, constants) for op in ops)


def _multiplies_pixels(op: LinalgOp, constants: Sequence[TensorSpec]) -> bool:
    """Say whether an op is a convolution with one tap and channels first: a product of constant rows with columns."""
    if op.kind is not OpKind.CONTRACTION or len(op.inputs) != 2:
        return False
    rows = [operand for operand in op.inputs if op.contiguous_dim not in operand.dims]
    columns = [operand for operand in op.inputs if op.contiguous_dim in operand.dims]
    return [each.tensor in constants for each in (*rows, *columns)] == [True, False] and len(rows) == 1


def _slides_innermost(op: LinalgOp) -> bool:
    """Say whether the windows of a convolution slide along the contiguous dimension of its result."""
    return bool(op.reduction_dims) and any(op.contiguous_dim in expr.dims for expr in op.sums_of_loops)
