"""Element-wise dispatches on CPUs: walk memory in order, one vector tile at a time."""

import math
from collections.abc import Iterable
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.sampling import Value
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.common import ElementwiseModule, check_instructions, steps_over
from mlir_sched.transform_scripts.extents import instructions, is_uneven, vector_elements
from mlir_sched.transform_scripts.llvm_cpu.templates.shares import equal_shares, workgroup_values
from mlir_sched.transform_scripts.module import Template
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Elementwise, Loop
from mlir_sched.transform_scripts.verbs.draws import DIVIDE, PEEL
from mlir_sched.transform_scripts.verbs.facts import MAX_INSTRUCTIONS

MAX_VECTORS_PER_ROW, MAX_UNEVEN_VECTORS = 16, 4
MAX_STRIDED = 16
MAX_VECTORS = 64
FEW_INSTRUCTIONS = 32
"""Instructions of a tile up to which several vectors are computed at once: more of a polynomial leave the registers."""


class ElementwiseTiling(ElementwiseModule):
    """A module that tiles element-wise ops for vectors: the result's contiguous loop, and loops contiguous in an input.

    Draws the order of the loops for a transposing op, which may walk either its input or its result in order.
    """

    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)
    gathers: ClassVar[bool] = True

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Elementwise | None:
        """Match a dispatch of element-wise ops and fills whose vectors are read whole."""
        found = super().match(op, dispatch, target)
        return None if found is None or steps_over(found.root, found.contiguous) else found

    def templates(self, found: Elementwise, dispatch: Dispatch, target: Target) -> Iterable[Template]:
        """Return walks along memory, a few vectors at a time; a transposing op walks squares of a vector's length."""
        root, along = found.root, found.contiguous
        shares, lanes = equal_shares(dispatch, self.parallel(found, dispatch), target), vector_elements(root, target)
        others = [loop for loop in found.loops if loop is not along and not steps_over(root, loop)]
        crossed = [loop for loop in others if _is_contiguous_in_an_input(root, loop)]
        high = (crossed or others)[-1:]
        each = max(1, sum(instructions(op, 1.0) for op in dispatch.ops))
        most = max(1, MAX_INSTRUCTIONS // each)
        uneven = is_uneven(next(size for loop, size in shares.items() if loop.name == along.name), lanes)
        few = max(1, min(4, FEW_INSTRUCTIONS // each))
        for wide, rows in ((1, lanes), (1, 4), (2, 8), (1, 1)) if crossed else ((few, 1), (1, 1), (8, 1), (1, 4)):
            size, count = lanes * max(1, min(wide, most // rows)), min(rows, most)
            values: dict[str, Value] = {"vector": size, "tail": PEEL} if uneven else {"vector": (size,)}
            values |= {f"tile_{loop.name}": (count if loop in high else 1,) for loop in others}
            yield Template("", workgroup_values(shares) | values)

    def schedule(self, s: Schedule, found: Elementwise) -> None:
        """Tile the root loop by loop, fuse the rest into the innermost loop, vectorize.

        What the root reads of other ops is fused into one loop after the other: inside of two loops the root reads a
        slice of a slice, in which ``transform.structured.fuse_into_containing_op`` finds no op.
        """
        tile, tail = _sample_tile(s, found)
        order = tuple(tile)
        if 2 <= len(order) <= 4 and found.root.transposes:
            order = s.sample_order("order", order, still=[loop for loop in order if tile[loop] == s.extent(loop)])
        if any(operand.producer is not None for operand in found.root.inputs):
            s.tile(found.root, tile, order=order, fuse=True)
        else:
            *_, innermost = s.tile(found.root, tile, order=order)
            s.fuse_rest(found.root, innermost)
        if any(steps_over(found.root, loop) for loop in found.loops):
            if tail == PEEL:
                s.peel()
            s.fold_unit_dims()  # what is left is read element after element
        s.vectorize(*found.ops, tail=tail)


def _sample_tile(s: Schedule, found: Elementwise) -> tuple[dict[Loop, int], str]:
    op, width = found.root, s.lanes(found.root)
    tile: dict[Loop, int] = {}
    tail = DIVIDE
    for loop in found.loops:
        if steps_over(op, loop):
            tile[loop] = 1  # MLIR vectorizes no op that steps over elements
            continue
        if loop is not found.contiguous:
            most = MAX_STRIDED if _is_contiguous_in_an_input(op, loop) else 4
            tile[loop] = s.sample_tile(f"tile_{loop.name}", loop, most=most)
            continue
        if is_uneven(s.extent(loop), width):
            tail = s.sample_tail((PEEL,), weights=(1.0, 3.0))
        most = MAX_VECTORS_PER_ROW if tail == DIVIDE else MAX_UNEVEN_VECTORS
        tile[loop] = s.sample_vector_tile("vector", loop, width, tail, most=most)
    vectors = math.prod(tile.values()) / width
    s.require(vectors <= MAX_VECTORS, f"a tile of {vectors:.0f} vectors is above {MAX_VECTORS}")
    check_instructions(s, vectors)
    return tile, tail


def _is_contiguous_in_an_input(op: LinalgOp, loop: Loop) -> bool:
    """Say whether a loop walks the last dimension of an input element after element."""
    last = [operand.indexing_map[-1] for operand in op.inputs if operand.indexing_map]
    return any(expr.is_dim and expr.dims[0] == loop.position(op) for expr in last)
