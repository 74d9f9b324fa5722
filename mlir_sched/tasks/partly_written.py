"""Dispatches in which IREE itself is wrong: they store a tensor of which they compute a part.

IREE 3.13 may join the op that makes a value with a reader that takes, say, every second element, although the value has
other readers: the joined op runs over the elements that the strided reader takes, and the others are never written.
Other faults of the pass: iree-org/iree issues 19977 and 20004.
"""

import math
from collections.abc import Sequence

from mlir_sched.payload import Dispatch, Operand
from mlir_sched.tasks.task import Task


def why_unwritten(tasks: Sequence[Task]) -> str:
    """Return the cause where a program with these dispatches leaves elements of a tensor unwritten, and the way out.

    Empty where every dispatch writes all elements of what it stores.
    """
    for task in tasks:
        for result, written in _in_part(task.dispatch) if task.dispatch else ():
            return (
                f"{task.name} writes {written} of {result.tensor.elements} elements of a tensor that others read, as "
                "IREE joins the op that makes the tensor with one that reads it in strides; a barrier "
                "(util.optimization_barrier) in front of the strided read avoids that"
            )
    return ""


def _in_part(dispatch: Dispatch) -> list[tuple[Operand, int]]:
    """Return the new tensors that the ops of a dispatch store in part, each with the number of written elements."""
    stored = [dispatch.ops[index] for index in dispatch.results]
    results = [(op, result) for op in stored for result in op.outputs if result.producer is None]
    written = [(result, math.prod(op.extents[dim] for dim in result.dims)) for op, result in results]
    return [(result, count) for result, count in written if count < result.tensor.elements]
