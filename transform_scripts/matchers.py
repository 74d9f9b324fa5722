"""Matchers: functions that return a dispatch around an op as a structure with named loops, or None for another form.

A matcher is asked about every op of a dispatch, once per design space.
"""

from mlir_sched.payload import PAD, Dispatch, LinalgOp, Operand, OpKind, producer_tiles
from mlir_sched.transform_scripts.structures import (
    Attention,
    Contraction,
    Convolution,
    Elementwise,
    Loop,
    Loops,
    Reduction,
    SeveralResults,
    contiguous_loop,
    loop_of,
    parallel_loops,
)

OPS_OF_ATTENTION = (
    OpKind.CONTRACTION,
    OpKind.ELEMENTWISE,
    OpKind.REDUCTION,
    OpKind.REDUCTION,
    OpKind.CONTRACTION,
    OpKind.ELEMENTWISE,
)
"""Kinds of the ops of an attention beside its fills: scores, what changes them, largest, weights, values, division."""

MIN_ROWS = 4
"""Rows of a register tile from which a vector of columns is loaded for enough products."""


def contraction(op: LinalgOp, dispatch: Dispatch) -> Contraction | None:
    """Match matmul, batch matmul, vector times matrix, any transposition, any generic that contracts.

    Returns:
        The structure of a dispatch of [fill,] contraction [, element-wise ops on its result]; None for another form, or
        where the result has no vector dimension.
    """
    if op.kind is not OpKind.CONTRACTION or dispatch.other_ops or len(dispatch.results) != 1:
        return None
    columns, dims = op.contiguous_dim, op.contraction_dims
    fill, epilogues = fill_of(op, dispatch), dispatch.ops[op.index + 1 :]
    if columns is None or not dims.k or columns in dims.batch or op.extents[columns] == 1:
        return None
    if not _only(dispatch, fill, epilogues) or (epilogues and dispatch.results[0] != epilogues[-1].index):
        return None
    rows = _row_loop(op, dims.m if columns in dims.n else dims.n)
    places = walked_by(op, fill, epilogues, dispatch)

    def loop(position: int, name: str = "") -> Loop:
        return Loop(name or str(position), op.extents[position], places[position])

    return Contraction(
        op,
        fill,
        epilogues,
        columns=loop(columns, "columns"),
        rows=None if rows is None else loop(rows, "rows"),
        others=tuple(loop(d) for d in op.parallel_dims if d not in (columns, rows) and op.extents[d] > 1),
        reduction=loop(dims.k[-1], "reduction"),
        outer_reductions=tuple(loop(d) for d in dims.k[:-1] if op.extents[d] > 1),
    )


def _row_loop(op: LinalgOp, loops: tuple[int, ...]) -> int | None:
    """Return the loop over rows, of those that only one input of a contraction reads; None if none is longer than 1.

    That is the loop along which the input is contiguous, so that rows share cache lines; where it is too short for a
    register tile, the longest, and of equal ones the innermost.
    """
    longer = [d for d in loops if op.extents[d] > 1]
    along = [loop for operand in op.inputs[:2] if operand.is_projected_permutation for loop in operand.loops[-1:]]
    contiguous = [d for d in longer if d in along and op.extents[d] >= MIN_ROWS]
    return max(contiguous or longer, key=lambda d: (op.extents[d], d), default=None)


def convolution(op: LinalgOp, dispatch: Dispatch) -> Convolution | None:
    """Match convolutions and poolings of any rank, stride, dilation, grouping and layout.

    Returns:
        The structure of a dispatch of [fill,] convolution [, element-wise ops on its result], which may also pad the
        tensors that it loads. None for another form.
    """
    if op.kind is not OpKind.CONVOLUTION or set(dispatch.other_ops) - {PAD} or len(dispatch.results) != 1:
        return None
    fill, epilogues = fill_of(op, dispatch), dispatch.ops[op.index + 1 :]
    if not _only(dispatch, fill, epilogues):
        return None
    places = walked_by(op, fill, epilogues, dispatch)
    loops = tuple(Loop(str(d), op.extents[d], places[d]) for d in range(len(op.extents)))
    found = Convolution(op, fill, epilogues, loops)
    covered = all(_covers(epilogue, found.parallel) for epilogue in epilogues)
    return found if covered and dispatch.results[0] == found.root.index else None


def elementwise(op: LinalgOp, dispatch: Dispatch, *, gathers: bool = False) -> Elementwise | None:
    """Match the root of a dispatch of element-wise ops and fills; a loop must walk the result's last dimension.

    Args:
        gathers: Whether ops may also read elements at computed places.
    """
    if op.index != dispatch.root.index or dispatch.other_ops or len(dispatch.results) != 1:
        return None
    contiguous = contiguous_loop(op, loops := parallel_loops(op))
    if contiguous is None or op.iterations == 1:
        return None
    others = [other for other in dispatch.ops if not (gathers and other.gathers)]
    if any(other.kind not in (OpKind.ELEMENTWISE, OpKind.FILL) for other in others):
        return None
    return Elementwise(op, dispatch.ops, tuple(loop for loop in loops if loop.extent > 1), contiguous)


def reduction(op: LinalgOp, dispatch: Dispatch) -> Reduction | None:
    """Match the first reduction of a dispatch of element-wise ops and reductions along the rows of one result.

    Contractions count as reductions where they are sums over the rows of a matrix. Convolutions do not count: their
    lanes would overlap.
    """
    reductions = [other for other in dispatch.ops if other.reduces]
    if not reductions or op.index != reductions[0].index or dispatch.other_ops or len(dispatch.results) != 1:
        return None
    known = all(other.reduces or other.kind in (OpKind.FILL, OpKind.ELEMENTWISE) for other in dispatch.ops)
    contractions = [other for other in dispatch.ops if other.kind is OpKind.CONTRACTION]
    rows = row_loops(dispatch)
    if not known or rows is None or any(other.has_windows for other in dispatch.ops):
        return None
    if not all(map(runs_along_rows, contractions)):
        return None
    return Reduction(op, dispatch.root, dispatch.ops, rows)


def several_results(op: LinalgOp, dispatch: Dispatch) -> SeveralResults | None:
    """Match the last op of a dispatch that stores the results of several ops and reads all others.

    Returns:
        The structure of a dispatch of element-wise ops, reductions and contractions. None for another form: with ops
        that the last one does not read, or with a stored result that shares its fill with another op, as the fill of
        only one result follows this result into the workgroups.
    """
    root = dispatch.ops[-1]
    if op is not root or dispatch.other_ops or len(dispatch.results) < 2 or dispatch.root is not root:
        return None
    kinds = (OpKind.FILL, OpKind.ELEMENTWISE, OpKind.REDUCTION, OpKind.CONTRACTION)
    if any(other.kind not in kinds or other.has_windows or len(other.outputs) != 1 for other in dispatch.ops):
        return None
    if any(not dispatch.consumers(other.index) for other in dispatch.ops[:-1]):
        return None
    stored = [dispatch.ops[index] for index in dispatch.results]
    fills = [fill for other in stored if (fill := fill_of(other, dispatch)) is not None]
    if any(len(dispatch.consumers(fill.index)) > 1 for fill in fills):
        return None
    loops = [loop for loop in parallel_loops(root) if all(_divides(loop, other, dispatch) for other in stored)]
    between = tuple(other for other in dispatch.beside_fills if other.index not in dispatch.results)
    return SeveralResults(root, tuple(loops), tuple(stored), between)


def _divides(loop: Loop, op: LinalgOp, dispatch: Dispatch) -> bool:
    """Say whether each iteration of a loop of the last op needs a part of its own of an op's result."""
    tiles: dict[int, tuple[int, ...]] = {}
    for other in reversed(dispatch.ops):
        if loop.is_walked_by(other):
            tiles[other.index] = tuple(1 if d == loop.position(other) else e for d, e in enumerate(other.extents))
            continue
        needed = [producer_tiles(reader, [tiles[reader.index]], other)[0] for reader in dispatch.consumers(other.index)]
        tiles[other.index] = tuple(map(max, zip(*needed, strict=True)))
    parts = [d for d in op.parallel_dims if tiles[op.index][d] < op.extents[d]]
    return loop.extent == 1 or [op.extents[d] for d in parts] == [loop.extent]


def attention(op: LinalgOp, dispatch: Dispatch) -> Attention | None:
    """Match the first contraction of a dispatch that computes attention.

    Returns:
        The structure of a dispatch as ``mlir_sched/program/rewrites/attention/fused.py`` writes it; None for another
        form.
    """
    ops = dispatch.beside_fills
    kinds = tuple(other.kind for other in ops)
    if kinds != OPS_OF_ATTENTION or op is not ops[0] or dispatch.other_ops or len(dispatch.results) != 1:
        return None
    scores, score, largest, weights, values, root = ops
    made = {other.index for other in (scores, score, weights)}
    read = [_read_from(made, other) for other in (score, largest, weights, values)]
    result, summed = _read_from({values.index}, root), values.outputs[0]
    if result is None or any(operand is None for operand in read) or not summed.is_projected_permutation:
        return None
    walked = [scores.outputs[0].loops, *(operand.loops for operand in read if operand is not None)]
    of_scores, of_values = scores.contraction_dims, values.contraction_dims
    if of_scores.n != walked[0][-1:] or of_values.k != walked[-1][-1:] or len(of_values.n) != 1 or not of_scores.m:
        return None
    of_root = dict(zip(summed.loops, result.loops, strict=True))
    if root.contiguous_dim != of_root[of_values.n[0]]:
        return None

    def loop(dim: int, name: str = "") -> Loop:
        """Return the loop along a dimension of the scores; ops that are tiled later come first."""
        places = [(other.index, loops[dim]) for other, loops in zip(ops, walked, strict=False)]
        if walked[-1][dim] in of_root:
            places.append((root.index, of_root[walked[-1][dim]]))
        return Loop(name or str(dim), scores.outputs[0].tensor.shape[dim], tuple(reversed(places)))

    row, keys = walked[0].index(max(of_scores.m, key=lambda place: scores.extents[place])), len(walked[0]) - 1
    return Attention(
        scores,
        score,
        largest,
        weights,
        values,
        root,
        dispatch.fills,
        others=tuple(loop(dim) for dim in range(keys) if dim != row),
        rows=loop(row, "rows"),
        keys=loop(keys, "keys"),
        columns=loop_of(root, of_root[of_values.n[0]], "columns"),
        reduction=loop_of(scores, of_scores.k[-1], "reduction"),
    )


def row_loops(dispatch: Dispatch) -> Loops | None:
    """Return the loops of the root that no reduction of the dispatch runs along, or None if there is no such split.

    For a root that reduces, these are its parallel loops; for an element-wise root, the loops that it shares with the
    reduced values it reads.
    """
    root = dispatch.root
    if root.reduces:
        return parallel_loops(root)
    rows = set(root.parallel_dims)
    reads_reduced = False
    for operand in root.inputs:
        if operand.producer is not None and dispatch.ops[operand.producer].reduces:
            reads_reduced = True
            rows &= set(operand.dims)
    return tuple(loop_of(root, position) for position in sorted(rows)) if reads_reduced else None


def _read_from(made: set[int], op: LinalgOp) -> Operand | None:
    """Return the first operand of an op that one of the ops ``made`` makes, if one loop walks each dimension of it."""
    operand = next((operand for operand in (*op.inputs, *op.outputs) if operand.producer in made), None)
    return operand if operand is not None and operand.is_projected_permutation else None


def runs_along_rows(op: LinalgOp) -> bool:
    """Say whether a contraction is a sum over the rows of a matrix, and not a product that reuses both inputs.

    A vector times a row-major matrix sums along columns of the matrix: with partial sums in lanes it is 10 times slower
    than with accumulators in registers.
    """
    dims = op.contraction_dims
    longest = [max((op.extents[d] for d in loops), default=1) for loops in (dims.m, dims.n)]
    return min(longest) == 1 and op.reduction_dims[-1] in op.largest_input.indexing_map[-1].dims


def fill_of(op: LinalgOp, dispatch: Dispatch) -> LinalgOp | None:
    """Return the fill that initialises an op's result, or None if the dispatch has no such fill."""
    init = op.outputs[0].producer
    return dispatch.ops[init] if init is not None and dispatch.ops[init].kind is OpKind.FILL else None


def walked_by(
    op: LinalgOp, fill: LinalgOp | None, epilogues: tuple[LinalgOp, ...], dispatch: Dispatch
) -> list[tuple[tuple[int, int], ...]]:
    """Return, per loop of an op, the (op index, position) pairs of op, fill and epilogues that walk the loop."""
    maps: list[tuple[int, dict[int, int]]] = [(op.index, {d: d for d in range(len(op.extents))})]
    if fill is not None:
        maps.append((fill.index, dict(zip(op.outputs[0].loops, fill.parallel_dims, strict=True))))
    maps += [(epilogue.index, corresponding_loops(op, epilogue, dispatch)) for epilogue in epilogues]
    return [
        tuple((index, walks[position]) for index, walks in maps if position in walks)
        for position in range(len(op.extents))
    ]


def _only(dispatch: Dispatch, fill: LinalgOp | None, epilogues: tuple[LinalgOp, ...]) -> bool:
    """Say whether a dispatch has one op beside a fill and epilogues, and the epilogues are element-wise."""
    elementwise = all(epilogue.kind is OpKind.ELEMENTWISE for epilogue in epilogues)
    return elementwise and len(dispatch.ops) == 1 + len(epilogues) + (fill is not None)


def corresponding_loops(op: LinalgOp, epilogue: LinalgOp, dispatch: Dispatch) -> dict[int, int]:
    """Return, for the parallel loops of an op longer than 1, the corresponding loops of an epilogue, by position.

    Args:
        epilogue: An op behind ``op`` that reads its result, directly or through the ops between the two.
    """
    found: dict[int, int] = {}
    for loop in epilogue.parallel_dims:
        consumer, tile = epilogue, tuple(e if d == loop else 1 for d, e in enumerate(epilogue.extents))
        for producer in reversed(dispatch.ops[op.index : epilogue.index]):
            (tile,) = producer_tiles(consumer, [tile], producer)
            consumer = producer
        found |= {d: loop for d in op.parallel_dims if tile[d] > 1}
    return found


def _covers(epilogue: LinalgOp, parallel: Loops) -> bool:
    """Say whether an epilogue has the same loops as the convolution, in any order."""
    loops = [loop for loop in parallel if loop.extent > 1]
    longer = [loop.position(epilogue) for loop in parallel_loops(epilogue) if loop.extent > 1]
    walks_all = all(loop.is_walked_by(epilogue) for loop in loops)
    return walks_all and sorted(loop.position(epilogue) for loop in loops) == longer
