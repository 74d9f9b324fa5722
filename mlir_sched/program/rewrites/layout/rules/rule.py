"""What a kind of op does to layouts, and how the op is computed channels last, as data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.attributes import REWRITTEN
from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.layout.channel_dims import Axes, Dims, Order
from mlir_sched.program.rewrites.placed.body import Body

NAME = "channels_last"
"""Name of the rewrite that the rules are of."""
Orders = Callable[[Any], Order]
"""Returns the order of a value's dims in memory."""


def equal_places(op: Any) -> Sequence[Axes]:
    """Return the axes of an op whose dims are those of equal places."""
    return [range(value.type.rank) for value in (*Body(op).inputs, op.result)]


@dataclass(frozen=True)
class Rule:
    """What ops of some names do to layouts.

    Attributes:
        effect: What they do to channels, for the documentation.
        build: Returns the result in its order, from the op, its inputs (:attr:`Body.inputs`) in their orders, and the
            orders of values.
        axes: Returns the axes (:class:`Op`) of an op's inputs and of its result.
        fits: Says whether the rule is right for an op of static tensors with one result.
        channels, reshapes: As of :class:`Op`.
        any_size: Says whether what is built is right for tensors of other sizes, too, where these are not 1.
    """

    effect: str
    build: Callable[[Any, Sequence[Any], Orders], Any]
    axes: Callable[[Any], Sequence[Axes]] = equal_places
    fits: Callable[[Any], bool] = lambda _: True
    channels: Dims = frozenset()
    reshapes: bool = False
    any_size: Callable[[Any], bool] = lambda _: False


def in_order(values: Sequence[Any], order: Order) -> list[Any]:
    """Return what belongs to dims, as the dims lie in memory."""
    return [values[dim] for dim in order]


def marked(result: Any) -> Any:
    """Return a result whose op is marked as put in place by the rewrite; others are fused, moved or folded."""
    producer(result).attributes[REWRITTEN] = ir.StringAttr.get(NAME)
    return result
