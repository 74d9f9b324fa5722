"""Attention as one dispatch: the ops of its products and its softmax, put together before IREE forms dispatches.

IREE forms three dispatches of these ops, which write the scores and their softmax to memory and read both again. As
one, the scores of a few queries stay on the stack of a workgroup (``transform_scripts/llvm_cpu/attention.py``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, math, tensor

from mlir_sched.program.rewrites.attention.ops import AttentionOp, Walked, product_of
from mlir_sched.program.rewrites.attention.row_tiles import COPIES, STACK_BYTES, RowTiles
from mlir_sched.program.rewrites.linalg_ops import (
    barrier,
    dims_map,
    generic,
    generic_of_several,
    number,
    slice_of,
    transposed,
)
from mlir_sched.program.rewrites.padding.tensor_pad import padded
from mlir_sched.transform_scripts.extents import floor_power_of_two, vector_multiple

VECTOR = 16
"""Numbers that keys are padded to a multiple of: the elements of the widest vector."""
ROW_TILES = range(4, 17)
"""Sizes of tiles of queries that scripts are good with; where none divides the queries, they are padded to a multiple
of :data:`PADDED_ROWS`."""
PADDED_ROWS = 8
BEHIND = ("tensor.extract_slice", "linalg.transpose")
"""Names of the ops that may stand behind the dispatch."""
WIDEST, FEATURES_AT_ONCE, KEYS_AT_ONCE = 64, 4, 32
"""Tile sizes of IREE's own code along keys or columns, and along what is summed: the fastest of powers of two."""
LONG_VECTOR_BYTES = 512 * 16
"""Bytes of a product's vectors from which IREE 3.13 refuses code where registers have 16 bytes, as on Arm; 16 KiB with
AVX2. Source: ``getMaxVectorSizeForLargeVectorCheck`` of IREE's ``LLVMCPU/Utils.cpp``."""
MOST_KEYS = STACK_BYTES // (4 * COPIES)
"""Most keys, of a row of whose scores IREE's own code keeps copies on the stack: 1536."""


@dataclass(frozen=True)
class _Loops:
    """The loops of an attention that becomes one dispatch, a letter each, with their iterations.

    Attributes:
        rows: The loop of the queries.
        keys: The loop of the keys.
        columns: The loop of the features of a value.
        sizes: Iterations of every loop, padded.
        real: Number of keys without padding.
    """

    rows: str
    keys: str
    columns: str
    sizes: Mapping[str, int]
    real: int


def can_be_fused(keys: Walked, values: Walked, scores: str, result: str) -> bool:
    """Say whether an attention may become one dispatch: there are scripts for tensors of such sizes.

    Args:
        keys, values: Two of its operands.
        scores: The loops of the scores, that of the keys last.
        result: The loops of the result.
    """
    columns, rows = _columns(values, scores, result), _rows(keys, scores)
    vectors = len(columns) == 1 and result[-1:] == columns[0] and values.size(columns[0]) % VECTOR == 0
    return bool(rows) and vectors and keys.size(scores[-1]) <= MOST_KEYS


def in_one_dispatch(attention: AttentionOp) -> Any:
    """Return an attention for which :func:`can_be_fused` holds, as ops that form one dispatch.

    The keys are transposed before, once per call, as vectors of scores lie along the keys. Keys are padded to whole
    vectors, and do not count there; queries are padded, and their results left out, where no tile divides them.
    """
    loops, wanted = _loops_of(attention), attention.result
    if attention.heads_beside_tokens:
        attention = _tokens_first(attention, loops)
    ready = replace(
        attention,
        queries=_padded(attention.queries, loops),
        keys=_last(_padded(attention.keys, loops), loops.keys),
        values=_padded(attention.values, loops),
        mask=attention.mask and _padded(attention.mask, loops),
        score=attention.score if loops.real == loops.sizes[loops.keys] else _counting(attention, loops.real),
    )
    element = attention.queries.value.type.element_type
    kind = ir.RankedTensorType.get([loops.sizes[loop] for loop in attention.result], element)
    attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
    region = ir.Operation.create("flow.dispatch.region", results=[kind], attributes=attributes, regions=2)
    with ir.InsertionPoint(region.regions[0].blocks.append()):
        ir.Operation.create("flow.return", operands=[_result(ready, loops)])
    queries, rows = attention.queries.size(loops.rows), attention.result.index(loops.rows)
    real = [queries if dim == rows else size for dim, size in enumerate(kind.shape)]
    result = slice_of(region.result, [0] * len(real), real)
    return result if attention.result == wanted else transposed(result, list(map(attention.result.index, wanted)))


def _tokens_first(attention: AttentionOp, loops: _Loops) -> AttentionOp:
    """Return an attention with tokens outside of heads: its transposes and those of the program cancel each other."""
    return replace(
        attention,
        queries=_first(attention.queries, loops.rows),
        values=_first(attention.values, loops.keys),
        result=loops.rows + attention.result.replace(loops.rows, ""),
    )


def _loops_of(attention: AttentionOp) -> _Loops:
    queries, keys, values = attention.queries, attention.keys, attention.values
    last = attention.scores[-1]
    sizes = {loop: each.size(loop) for each in (values, keys, queries) for loop in each.loops}
    rows = max(_rows(keys, attention.scores), key=sizes.__getitem__)
    (columns,) = _columns(values, attention.scores, attention.result)
    real = sizes[last]
    if not any(sizes[rows] % tile == 0 for tile in ROW_TILES):
        sizes[rows] += -sizes[rows] % PADDED_ROWS
    sizes[last] += -real % VECTOR
    return _Loops(rows, last, columns, sizes, real)


def _rows(keys: Walked, scores: str) -> list[str]:
    """Return the loops of queries alone."""
    return [loop for loop in scores if loop not in keys.loops]


def _columns(values: Walked, scores: str, result: str) -> list[str]:
    """Return the loops of the features of a value."""
    return [loop for loop in values.loops if loop in result and loop not in scores]


def _padded(tensor_: Walked, loops: _Loops) -> Walked:
    """Return a tensor with zeros behind its rows and keys, where they are padded."""
    behind = [loops.sizes[loop] - tensor_.size(loop) for loop in tensor_.loops]
    return Walked(padded(tensor_.value, [0] * len(behind), behind), tensor_.loops) if any(behind) else tensor_


def _first(tensor_: Walked, loop: str) -> Walked:
    """Return a tensor with the dimension of a loop first."""
    return _in_order(tensor_, loop + tensor_.loops.replace(loop, ""))


def _last(tensor_: Walked, loop: str) -> Walked:
    """Return a tensor with the dimension of a loop last, in memory, too."""
    made = _in_order(tensor_, tensor_.loops.replace(loop, "") + loop)
    return Walked(barrier(made.value), made.loops)


def _in_order(tensor_: Walked, loops: str) -> Walked:
    """Return a tensor with its dimensions in the order of ``loops``."""
    order = list(map(tensor_.loops.index, loops))
    return Walked(transposed(tensor_.value, order), loops) if loops != tensor_.loops else tensor_


def _counting(attention: AttentionOp, real: int) -> Any:
    """Return a function that makes a score, minus infinity for keys that are padding."""
    dim = len(attention.scores) - 1

    def score(*scalars: Any) -> Any:
        index = ir.IndexType.get()
        counts = arith.cmpi(arith.CmpIPredicate.ult, linalg.IndexOp(dim).result, arith.constant(index, real))
        made = attention.score(*scalars)
        return arith.select(counts, made, number(made.type, float("-inf")))

    return score


def _result(attention: AttentionOp, loops: _Loops) -> Any:
    """Return the attention; what is divided by the sums of exponentials is the result, which has fewer elements.

    The exponentials take the place of the scores: a sum along the keys that also writes them cannot be taken for an
    element-wise op, whose result IREE would put into a buffer of its own.
    """
    scores, element = Walked(attention.scored(), attention.scores), attention.queries.value.type.element_type
    rank, of_rows = len(scores.loops), scores.loops[:-1]
    every, each_row = dims_map(rank, range(rank)), dims_map(rank, range(rank - 1))
    along_keys = ["parallel"] * (rank - 1) + ["reduction"]
    shape = [loops.sizes[loop] for loop in of_rows]

    def row_init(start: float) -> Any:
        return linalg.fill(number(element, start), outs=[tensor.empty(shape, element)])

    largest = generic([scores.value], row_init(float("-inf")), [every, each_row], along_keys, arith.maxnumf)
    weights, sums = generic_of_several(
        [largest], [scores.value, row_init(0.0)], [each_row, every, each_row], along_keys, _exponential_and_sum
    )
    products = Walked(product_of(Walked(weights, scores.loops), attention.values, attention.result), attention.result)
    result = _divided(products, Walked(sums, of_rows))
    _tile(attention, loops, scores.value.owner, largest.owner, weights.owner, products.value.owner, result.owner)
    return result


def _tile(attention: AttentionOp, loops: _Loops, *ops: Any) -> None:
    """Give the ops behind the first one, in their order, and the first one the tile sizes of IREE's own code."""
    score, largest, weights, products, result = ops
    of_scores, of_result = attention.scores, attention.result
    keys, columns = ({loop: _width(loops.sizes[loop], WIDEST) for loop in each} for each in (loops.keys, loops.columns))
    summed = "".join(sorted({*attention.queries.loops} - {*of_scores}))
    steps = {loop: vector_multiple(loops.sizes[loop], FEATURES_AT_ONCE) for loop in summed}
    element_bytes = attention.queries.value.type.element_type.width // 8
    row_bytes = loops.sizes[loops.keys] * element_bytes
    tiles = RowTiles.of(of_scores[:-1], loops.rows, loops.sizes[loops.rows], row_bytes)
    column_bytes = tiles.rows[loops.rows] * columns[loops.columns] * element_bytes
    shorter = floor_power_of_two((LONG_VECTOR_BYTES - 1) // column_bytes)
    keys_at_once = {loops.keys: vector_multiple(loops.sizes[loops.keys], min(KEYS_AT_ONCE, shorter))}
    first = score.operands[0].owner
    tiles.set(first, of_scores + summed, vector_inner_parallel=keys, vector_reduction=steps)
    tiles.set(score, of_scores, vector_inner_parallel=keys)
    tiles.set(largest, of_scores, vector_reduction=keys)
    tiles.set(weights, of_scores, vector_reduction=keys)
    tiles.set_root(products, of_result + loops.keys, vector_common_parallel=columns, vector_reduction=keys_at_once)
    tiles.set(result, of_result, vector_common_parallel=columns)


def _width(extent: int, most: int) -> int:
    """Return the largest multiple of a vector that divides an extent."""
    return max(width for width in range(VECTOR, most + 1, VECTOR) if extent % width == 0)


def _exponential_and_sum(largest: Any, score: Any, total: Any) -> list[Any]:
    exponential = math.exp(arith.subf(score, largest))
    return [exponential, arith.addf(total, exponential)]


def _divided(tensor_: Walked, of_row: Walked) -> Any:
    """Return every element of a tensor divided by that of its row."""
    rank, kind = len(tensor_.loops), tensor_.value.type
    maps = [dims_map(rank, map(tensor_.loops.index, each.loops)) for each in (tensor_, of_row, tensor_)]
    empty = tensor.empty(kind.shape, kind.element_type)
    inputs = [tensor_.value, of_row.value]
    return generic(inputs, empty, maps, ["parallel"] * rank, lambda x, row, _: arith.divf(x, row))
