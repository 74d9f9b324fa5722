"""Element-wise dispatches on CPUs: walk memory in order, one vector tile at a time."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.payload import LinalgOp
from mlir_sched.transform_scripts.common import elementwise as common
from mlir_sched.transform_scripts.common.clean_up import vectorize_peeled
from mlir_sched.transform_scripts.common.elementwise import check_instructions
from mlir_sched.transform_scripts.common.extents import (
    innermost_output_loop,
    sizes_for,
    vector_elements,
    vector_multiple,
)
from mlir_sched.transform_scripts.schedule import Loop, Schedule, product

MAX_CONTIGUOUS_IN_VECTORS = 16
MAX_STRIDED = 16
MAX_VECTORS = 64


class Elementwise(common.Elementwise):
    """Tiles element-wise ops for vectors: the result's contiguous loop, and loops contiguous in an input.

    Draws the order of the loops, so that a transposing op may walk its input or its result in order.
    """

    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def schedule(self, s: Schedule, op: LinalgOp) -> None:
        """Tile the root loop by loop, fuse the rest into the innermost loop, vectorize."""
        tile, edges = _sample_tile(s, op)
        order = list(tile)
        if 2 <= len(order) <= 4 and _transposes(op):
            order = [int(loop) for loop in s.sample_permutation("order", tuple(str(loop) for loop in order))]
        root = s.ops[op.index]
        loops: tuple[Loop, ...] = ()
        for loop in order:
            root, made = s.tile(root, sizes_for(op, {loop: tile[loop]}))
            loops = (*loops, *made)
        innermost = s.fuse_all_into(root, loops[-1])
        _vectorize(s, (*loops[:-1], innermost), edges)


def _sample_tile(s: Schedule, op: LinalgOp) -> tuple[dict[int, int], str]:
    contiguous = innermost_output_loop(op)
    strided = {o.indexing_map[-1].dims[0] for o in op.inputs if o.indexing_map and o.indexing_map[-1].is_dim()}
    width = vector_elements(op, s.target)
    tile: dict[int, int] = {}
    edges = "divisor"
    for loop in op.parallel_dims:
        extent = s.ops[op.index].tile[loop]
        if op.extents[loop] == 1:
            continue
        if loop == contiguous:
            if extent % width and extent > width:
                edges = s.sample_choice("edges", ("divisor", "peel"), weights=(1.0, 3.0))
            if edges == "peel":
                tile[loop] = s.sample_number("vector", [width * v for v in (1, 2, 4) if width * v <= extent])
            else:
                (tile[loop],) = s.sample_perfect_tile(
                    "vector",
                    extent,
                    1,
                    max_innermost=width * MAX_CONTIGUOUS_IN_VECTORS,
                    multiple_of=vector_multiple(extent, width),
                )
        else:
            most = MAX_STRIDED if loop in strided else 4
            (tile[loop],) = s.sample_perfect_tile(f"tile_{loop}", extent, 1, max_innermost=most)
    vectors = product(list(tile.values())) / width
    s.require(vectors <= MAX_VECTORS, f"a tile of {vectors:.0f} vectors is above {MAX_VECTORS}")
    check_instructions(s, vectors)
    s.notes["edges_peel"] = edges == "peel"
    return tile, edges


def _transposes(op: LinalgOp) -> bool:
    """Say whether some operand walks the loops in another order than the result."""
    ordered = [list(o.dims) == [d for e in o.indexing_map for d in e.dims] for o in (*op.inputs, *op.outputs)]
    return not all(ordered)


def _vectorize(s: Schedule, loops: tuple[Loop, ...], edges: str) -> None:
    if edges == "peel" and not all(loop.divides for loop in loops):
        vectorize_peeled(s, loops, range(len(s.ops)))
        return
    for op in s.ops:
        s.vectorize(op)
