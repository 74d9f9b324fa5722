"""Values that one op reads in part, such as every second row, while others read them, too.

IREE's pass that fuses an element-wise op of several readers into the first of them
(FuseMultiUseElementwiseProducer.cpp) takes readers with any indexing map. The fused op runs over the elements that this
reader takes, and leaves the other elements of the value unwritten. The pass takes readers without sums, with as many
loops as the op that makes the value. Before that, IREE drops loops of one iteration and fuses element-wise ops of one
reader, so that a value in front of element-wise ops may be read in part behind them. Depthwise convolutions and
poolings of one tap have no loop left that sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, EXPAND, maps_of
from mlir_sched.program.rewrites.repair.wrong_form import Read, WrongForm
from mlir_sched.program.rewrites.walked_program import WalkedProgram

_RESHAPES = (COLLAPSE, EXPAND, "tensor.cast")


def partial_reads(program: WalkedProgram) -> list[Read]:
    """Return the reads of parts of values that IREE may compute for these reads alone, although others read them."""
    reads = (Read(op, number) for op in program.ops for number in _read_in_part(op))
    return [read for read in reads if _may_be_fused(read.result)]


PARTIAL_READ = WrongForm(
    "partial_read",
    "a value that one op reads in part, such as every second row, and others read, too",
    "computes only the elements that this op reads",
    "a barrier in front of this read mends that",
    ("3.13",),
    partial_reads,
)


def _read_in_part(op: Any) -> Iterator[int]:
    """Yield the operands of which an op without sums does not read every element once."""
    maps = _maps_of(op)
    loops = _loops(op, maps)
    if loops and _is_element_wise(op, maps, loops):
        for number in range(len(op.operands) - len(op.results)):
            places = _places(op.operands[number], maps[number], loops)
            if len(places) == len(loops) and not _are_all(places, loops):
                yield number


def _may_be_fused(value: Any, *, shared: bool = False) -> bool:
    """Say whether IREE may fuse what makes a value into a reader of it, although that or the value has other readers.

    Args:
        value: The value.
        shared: Whether what is made of the value is known to have other readers.
    """
    op = producer(value)
    shared = shared or len({use.owner for use in value.uses}) > 1
    if op is None:
        return False
    if op.name in _RESHAPES:
        return _may_be_fused(op.operands[0], shared=shared)
    maps = _maps_of(op)
    loops = _loops(op, maps)
    if not loops or not _is_element_wise(op, maps, loops):
        return False
    inputs = list(zip(op.operands, maps, strict=True))[: -len(op.results)]
    whole = dict.fromkeys(v for v, m in inputs if _are_all(_places(v, m, loops), loops))
    return shared or any(map(_may_be_fused, whole))


def _maps_of(op: Any) -> list[ir.AffineMap]:
    """Return the indexing maps of an op that the pass may take, one per operand; none for any other op."""
    return maps_of(op) if op.name.startswith("linalg.") else []


def _loops(op: Any, maps: list[ir.AffineMap]) -> set[int]:
    """Return the loops of a structured op that may have more than one iteration."""
    return {
        expr.position
        for value, each in zip(op.operands, maps, strict=False)
        for expr, size in zip(each.results, _shape(value), strict=True)
        if isinstance(expr, ir.AffineDimExpr) and size != 1
    }


def _is_element_wise(op: Any, maps: list[ir.AffineMap], loops: set[int]) -> bool:
    """Say whether every result has a dim for every loop."""
    inits = range(len(op.operands) - len(op.results), len(op.operands))
    return all(_are_all(_places(op.operands[number], maps[number], loops), loops) for number in inits)


def _places(value: Any, each: ir.AffineMap, loops: set[int]) -> list[ir.AffineExpr]:
    """Return where an op reads or writes a value along its dims of more than one element.

    Loops of one iteration are left out.
    """
    loop_of = [ir.AffineExpr.get_dim(n) if n in loops else ir.AffineExpr.get_constant(0) for n in range(each.n_dims)]
    without = ir.AffineMap.get(each.n_dims, 0, loop_of)
    kept = [expr.compose(without) for expr, size in zip(each.results, _shape(value), strict=True) if size != 1]
    return list(ir.AffineMap.get(each.n_dims, 0, kept).results)


def _are_all(places: list[ir.AffineExpr], loops: set[int]) -> bool:
    """Say whether places are all loops, in any order."""
    dims = [place.position for place in places if isinstance(place, ir.AffineDimExpr)]
    return len(dims) == len(places) == len(loops) and {*dims} == loops


def _shape(value: Any) -> list[int]:
    """Return the shape of a tensor; that of a number is empty."""
    return list(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else []
