"""What a task computes and moves, and its family: the tasks that the scheduler takes for similar."""

from __future__ import annotations

from mlir_sched.payload import Dispatch, OpKind
from mlir_sched.search import Demand
from mlir_sched.tasks.task import Task


def demand_of(task: Task) -> Demand | None:
    """Return what one call of a task computes and moves; None for a task that cannot be tuned."""
    if task.dispatch is None:
        return None
    return Demand(family_of(task.dispatch), task.dispatch.scalar_ops, task.footprint_bytes)


def family_of(dispatch: Dispatch) -> str:
    """Return the family of a dispatch: kind, body and types of the op with most scalar operations.

    A convolution that sums over channels and one that does not (depthwise) are of different families: the first reuses
    every element of the image once per channel of its result.
    """
    op = max(dispatch.ops, key=lambda op: op.scalar_ops)
    types = (operand.tensor.element_type for operand in (*op.inputs, *op.outputs))
    depthwise = op.kind is OpKind.CONVOLUTION and not op.convolution_dims.input_channel
    return " ".join((op.kind, *(["depthwise"] if depthwise else []), *op.body, *types))
