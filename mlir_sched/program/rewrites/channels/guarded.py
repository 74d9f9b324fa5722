"""Weights that are right for the indices of gathers that were read, and no numbers for others.

A script compares constants that stand in the text of a program. Those that stand behind it as resources, as PyTorch's
exporter writes them, or that are computed, it does not see. So the weights of a linear op become NaN where such indices
are others than those that channels were followed through: at compile time, or when the module is loaded, as all of this
is constant. Each linear op has the guards of all gathers that it reads through, whichever others stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan
from typing import Any, NamedTuple

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from mlir_sched.program.rewrites.channels.order import Numbers
from mlir_sched.program.rewrites.linalg_ops import constant, dims_map, generic, number, with_parts
from mlir_sched.program.rewrites.placed.links import Link


class Guard(NamedTuple):
    """Indices that no script sees.

    Attributes:
        link: The indices, as a gather reads them.
        expected: What they have to be.
    """

    link: Link
    expected: Numbers


def guarded(weights: Any, indices: Iterable[tuple[Any, Numbers]]) -> Any:
    """Return weights as they are where tensors of indices have the elements that are expected, else NaN."""
    element = weights.type.element_type
    factor = linalg.fill(number(element, 1.0), outs=[tensor.empty([], element)])

    def kept(own: Any, expected: Any, so_far: Any) -> Any:
        return arith.select(arith.cmpi(arith.CmpIPredicate.eq, own, expected), so_far, number(element, nan))

    for value, expected in indices:
        rank = value.type.rank
        every, none = ir.AffineMap.get_identity(rank), dims_map(rank, [])
        operands = [value, constant(expected, value.type.element_type)]
        factor = generic(operands, factor, [every, every, none], ["reduction"] * rank, kept)
    return with_parts(weights, [factor], [], arith.mulf)
