"""Templates of row reductions and normalisations on CPUs: as many sums at once as hide the latency of an addition.

The sums are those of several rows, each in a vector of lanes: more lanes per row take longer to combine, and more rows
leave the registers. All ops of a dispatch take the same rows, so that a row is read from the L1 cache again.
"""

from collections.abc import Iterator, Mapping

from mlir_sched.payload import LinalgOp, OpKind
from mlir_sched.sampling import Value
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.extents import instructions, is_uneven, vector_elements
from mlir_sched.transform_scripts.llvm_cpu.templates.shares import workgroup_values
from mlir_sched.transform_scripts.module import Template
from mlir_sched.transform_scripts.structures import Loop, Reduction, contiguous_loop, parallel_loops, reduction_loops
from mlir_sched.transform_scripts.verbs.draws import PEEL
from mlir_sched.transform_scripts.verbs.facts import MAX_INSTRUCTIONS

TILES = ((4, 1, 2), (4, 1, 1), (8, 1, 1), (2, 1, 2), (4, 2, 2), (8, 2, 2), (1, 4, 4))
"""Rows of a tile, vectors of lanes per row, and vectors of an element-wise op; the best guess first."""
ALONE = ((1, 2, 1), (4, 1, 1), (2, 1, 1), (8, 1, 1), (1, 4, 1), (1, 1, 1))
"""The same of a reduction alone, which reads memory in order where it takes one row after the other."""
ACROSS = (2, 1, 4, 8)
"""Vectors of a tile whose vectors lie across the rows."""


def leaves_tails(found: Reduction, rows: int, lanes: int) -> bool:
    """Say whether whole vectors leave over some iterations of a loop along which sums are computed.

    Lanes along the innermost of several loops cannot be peeled alone.

    Args:
        rows: Iterations of the last row loop, in a workgroup.
        lanes: Elements of a vector.
    """
    reductions = [op for op in found.ops if op.reduces]
    if any(len(op.reduction_dims) > 1 for op in reductions):
        return False
    extents = [_innermost(op) for op in reductions if not op.reduces_in_strides] + [rows] * found.in_strides
    return any(is_uneven(extent, lanes) for extent in extents)


def reduction_templates(found: Reduction, shares: Mapping[Loop, int], target: Target) -> Iterator[Template]:
    """Yield templates of a dispatch of reductions along rows, the best guess first.

    Args:
        shares: A workgroup's size along each row loop of the root.
    """
    lanes, inside = vector_elements(found.root, target), {loop.name: size for loop, size in shares.items()}
    rows = inside[found.rows[-1].name] if found.rows else 1
    peels = leaves_tails(found, rows, lanes)
    most = MAX_INSTRUCTIONS // max(instructions(op, 1.0) for op in found.ops)
    computed = sum(op.kind is not OpKind.FILL for op in found.ops)
    tiles = [(1, vectors, 1) for vectors in ACROSS] if found.in_strides else TILES if computed > 1 else ALONE
    tail: dict[str, Value] = {"tail": PEEL} if peels else {}
    columns = found.root.extents[-1] if found.root.extents else 1
    for tile in sorted(tiles, key=lambda tile: columns % (tile[2] * lanes)):
        if tile[0] * max(tile[1:]) <= most:
            values = _values(found, rows, tile, target, peels=peels)
            yield Template("", workgroup_values(shares) | tail | values)


def _innermost(op: LinalgOp) -> int:
    return reduction_loops(op)[-1].extent


def _columns(found: Reduction, op: LinalgOp) -> Loop | None:
    """Return the contiguous loop of an element-wise op; None where that is known to be a row loop."""
    rows = {place for loop in found.parallel for place in loop.at}
    return contiguous_loop(op, [loop for loop in parallel_loops(op) if loop.at[0] not in rows])


def _values(
    found: Reduction, rows: int, tile: tuple[int, int, int], target: Target, *, peels: bool
) -> dict[str, Value]:
    high, in_lanes, wide = tile

    def size(op: LinalgOp, extent: int, vectors: int) -> Value:
        lanes = vector_elements(op, target)
        return vectors * lanes if peels and is_uneven(extent, lanes) else (vectors * lanes,)

    values = dict[str, Value]()
    if found.rows:
        values["rows"] = size(found.root, rows, in_lanes) if found.in_strides else (high,)
    for op in found.ops:
        if op.reduces and not op.reduces_in_strides:
            values[f"lanes_{_innermost(op)}"] = size(op, _innermost(op), in_lanes)
        elif op.kind is OpKind.ELEMENTWISE and (along := _columns(found, op)) is not None:
            values[f"columns_{op.index}"] = size(op, along.extent, wide)
    several = any(op.reduces and op is not found.first for op in found.ops)
    if found.rows and several and not (found.root.reduces or found.in_strides):
        values["later_rows"] = "tile"
    if sum(op.kind is not OpKind.FILL for op in found.ops) > 1:
        values["row"] = "parts"
    return values
