"""Dispatches that move elements and compute none: fills, copies, transposes and gathers."""

from enum import StrEnum

from mlir_sched.payload import LinalgOp, OpKind, TensorSpec
from mlir_sched.tasks.task import Task


class Movement(StrEnum):
    """What a dispatch or an op does that only moves elements; of several, the last one here counts."""

    FILLS = "fills"
    COPIES = "copies"
    TRANSPOSES = "transposes"
    GATHERS = "gathers"


_PLACES = frozenset(
    {"tensor.extract", "linalg.index", "affine.apply"}
    | {f"arith.{name}" for name in ("index_cast", "index_castui", "extsi", "extui", "trunci", "addi", "subi", "muli")}
    | {f"arith.{name}" for name in ("cmpi", "select", "maxsi", "minsi")}
)
"""Scalar ops of a gather that compute no more than the places it reads."""


def movement_of(task: Task) -> Movement | None:
    """Return what a dispatch does that only moves elements, by its ops; None for a dispatch that computes."""
    dispatch = task.dispatch
    if dispatch is None:
        return Movement.COPIES if task.only_copies else None
    found = [_movement(op) for op in dispatch.ops]
    found += [Movement.COPIES if name.startswith("tensor.") else None for name in dispatch.other_ops]
    moved = [each for each in found if each is not None]
    return max(moved, key=[*Movement].index) if len(moved) == len(found) else None


def written_bytes(task: Task) -> int:
    """Return the bytes that a dispatch writes in one run; at most those that it reads where its ops are not known."""
    if task.dispatch is None:
        return task.weight * min(sum(tensor.bytes for tensor in tensors) for tensors in (_read(task), task.outputs))
    stored = [task.dispatch.ops[index] for index in task.dispatch.results]
    return task.weight * sum(result.tensor.bytes for op in stored for result in op.outputs)


def _read(task: Task) -> list[TensorSpec]:
    """Return the tensors that a dispatch reads, without those that it updates in place, which are inputs, too."""
    read = list(task.inputs)
    for tensor in task.outputs:
        if tensor in read and len(read) > 1:
            read.remove(tensor)
    return read


def _movement(op: LinalgOp) -> Movement | None:
    if "tensor.extract" in op.body:
        return Movement.GATHERS if _PLACES.issuperset(op.body) else None
    if op.body:
        return None
    if op.kind is OpKind.FILL:
        return Movement.FILLS
    return Movement.TRANSPOSES if op.transposes else Movement.COPIES
