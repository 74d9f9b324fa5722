"""How an op and the element-wise ops behind it walk the same result."""

from __future__ import annotations

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.transform_scripts.schedule import producer_tiles


def corresponding_loops(op: LinalgOp, epilogue: LinalgOp, dispatch: Dispatch) -> dict[int, int]:
    """Return which loop of an epilogue walks what each parallel loop of an op longer than 1 walks.

    Args:
        op: The op.
        epilogue: An op behind it that reads its result, directly or through the ops between the two.
        dispatch: What they are in.
    """
    found: dict[int, int] = {}
    for loop in epilogue.parallel_dims:
        consumer, tile = epilogue, tuple(e if d == loop else 1 for d, e in enumerate(epilogue.extents))
        for producer in reversed(dispatch.ops[op.index : epilogue.index]):
            (tile,) = producer_tiles(consumer, [tile], producer)
            consumer = producer
        found |= {d: loop for d in op.parallel_dims if tile[d] > 1}
    return found
