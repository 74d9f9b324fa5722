"""The loops of one schedule as a graph, for cost models that learn from structure: ops, tiling levels and operands.

Read from the loop nests, without a compiler. Counts are scaled by ``log2(x + 1)``, as in the features.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from mlir_sched.models import LoopGraph
from mlir_sched.payload import LinalgOp, Operand, OpKind
from mlir_sched.space.features import NOTES
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.extents import vector_elements
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.tracking.nest import Level, TiledOp

LEVEL_KINDS = ("workgroup", "subgroup", "thread", "loop", "lanes", "vector")
"""What runs a level."""
OP_NUMBERS = len(OpKind) + 7 + len(NOTES)
LEVEL_NUMBERS = len(LEVEL_KINDS) + 11
OPERAND_NUMBERS = 9
NUMBERS = 3 + OP_NUMBERS + LEVEL_NUMBERS + OPERAND_NUMBERS
"""Numbers of a node: which of the three it is, then those of an op, of a level and of an operand, two of them zeros."""


def loop_graph(schedule: Schedule) -> LoopGraph:
    """Return the loops of a schedule as a graph whose nodes have :data:`NUMBERS` numbers.

    Per op of the dispatch there are nodes for its operands, the op, and its tiling levels from the outermost to the
    innermost; levels of one iteration are left out. An edge leads from each operand to the op, from the op to its first
    level, from each level to the next inner one, and from the last node of a producer to the operand that it makes.

    Args:
        schedule: A finished run of a schedule program (emitting nothing is enough).
    """
    nests = {nest.op.index: nest for nest in schedule.nests}
    nodes, edges, last = list[list[float]](), list[tuple[int, int]](), dict[int, int]()
    for op in schedule.dispatch.ops:
        nest = nests.get(op.index) or TiledOp(op, op.extents)
        own = len(nodes) + len(op.operands)
        for number, operand in enumerate(op.operands):
            if operand.producer is not None and operand.producer in last:
                edges.append((last[operand.producer], len(nodes)))
            edges.append((len(nodes), own))
            nodes.append(_operand_node(operand, nest, is_output=number >= len(op.inputs)))
        nodes.append(_op_node(schedule, nest))
        nodes += _level_nodes(nest, schedule.target)
        edges += pairwise(range(own, len(nodes)))
        last[op.index] = len(nodes) - 1
    return LoopGraph(np.array(nodes, dtype=np.float32), np.array(edges, dtype=np.int64).reshape(-1, 2))


def _op_node(schedule: Schedule, nest: TiledOp) -> list[float]:
    op = nest.op
    width = vector_elements(op, schedule.target)
    return _node(
        0,
        [
            *(float(op.kind is kind) for kind in OpKind),
            op.scalar_ops / max(1, schedule.dispatch.scalar_ops),
            _log(op.iterations),
            _log(_product(op.extents, op.reduction_dims)),
            _log(len(op.body)),
            _log(_product(nest.tile, op.parallel_dims)),
            _log(_product(nest.tile, op.reduction_dims)),
            _log(_contiguous(op, nest.tile) / width),
            *(_log(schedule.notes.get(name, 0.0)) for name in NOTES),
        ],
    )


def _level_nodes(nest: TiledOp, target: Target) -> Iterator[list[float]]:
    """Yield the nodes of the levels with more than one iteration, outermost first."""
    op, width = nest.op, vector_elements(nest.op, target)
    for outer, inner in pairwise([Level("", op.extents), *nest.levels]):
        if outer.tile == inner.tile:
            continue
        trips = [-(-o // i) for o, i in zip(outer.tile, inner.tile, strict=True)]
        footprint = sum(operand.footprint_bytes(inner.tile) for operand in op.operands)
        yield _node(
            1,
            [
                *(float(inner.kind == kind) for kind in LEVEL_KINDS),
                _log(_product(trips, op.parallel_dims)),
                _log(_product(trips, op.reduction_dims)),
                _log(_contiguous(op, trips)),
                _log(_product(inner.tile, op.parallel_dims)),
                _log(_product(inner.tile, op.reduction_dims)),
                _log(_contiguous(op, inner.tile) / width),
                _log(footprint),
                min(8.0, footprint / max(1, target.l1_bytes)),
                min(8.0, footprint / max(1, target.l2_bytes)),
                _log(math.prod(inner.tile) / max(1, footprint)),
                _log(math.prod(inner.tile)),
            ],
        )


def _operand_node(operand: Operand, nest: TiledOp, *, is_output: bool) -> list[float]:
    op = nest.op
    first = nest.levels[0].tile if nest.levels else nest.tile
    strides = _strides(operand, len(op.extents))
    summed = [strides[loop] for loop in op.reduction_dims]
    return _node(
        2,
        [
            float(is_output),
            float(bool(operand.padded)),
            _log(operand.tensor.bytes),
            float(operand.tensor.element_bytes),
            _log(operand.footprint_bytes(first)),
            _log(operand.footprint_bytes(nest.tile)),
            _log(0 if op.contiguous_dim is None else strides[op.contiguous_dim]),
            _log(summed[-1] if summed else 0),
            _log(_product(op.extents, [loop for loop, stride in enumerate(strides) if not stride])),
        ],
    )


def _strides(operand: Operand, loops: int) -> list[int]:
    """Return how many elements one iteration of each loop moves in memory; 0 where the operand stays."""
    strides, row = [0] * loops, 1
    for extent, steps in zip(reversed(operand.tensor.shape), reversed(operand.steps), strict=True):
        for loop, step in steps:
            strides[loop] += step * row
        row *= extent
    return strides


def _node(which: int, numbers: Sequence[float]) -> list[float]:
    """Return a node: 0 an op, 1 a level, 2 an operand."""
    before = (0, OP_NUMBERS, OP_NUMBERS + LEVEL_NUMBERS)[which]
    after = NUMBERS - 3 - before - len(numbers)
    return [*(float(which == kind) for kind in range(3)), *[0.0] * before, *numbers, *[0.0] * after]


def _product(values: Sequence[int], loops: Sequence[int]) -> int:
    return math.prod([values[loop] for loop in loops])


def _contiguous(op: LinalgOp, values: Sequence[int]) -> int:
    """Return the value of the loop that walks the result's contiguous dimension; 1 where there is none."""
    return 1 if op.contiguous_dim is None else values[op.contiguous_dim]


def _log(number: float) -> float:
    return math.log2(number + 1.0)
