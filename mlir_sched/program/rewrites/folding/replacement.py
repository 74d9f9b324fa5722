"""What replaces a chain: its linear op with scaled weights, and one addition."""

from __future__ import annotations

from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.folding.chain import Chain
from mlir_sched.program.rewrites.linalg_ops import (
    copied,
    dims_map,
    generic,
    multiply_add,
    with_parts,
    with_unit_dims,
    zeros,
)
from mlir_sched.program.rewrites.linear.affine import Affine
from mlir_sched.program.rewrites.linear.composed import Given, Numbers, carried, composed, passed
from mlir_sched.program.rewrites.linear.linear_op import INIT
from mlir_sched.program.rewrites.linear.moves import factor_sizes, moved, repeated


def replacement(site: Chain, given: Given) -> Any:
    """Return the result of a chain, computed from the values that its ways lead to."""
    weights = given[site.weights]
    rank = site.linear.op.operands[site.linear.image].type.rank
    image = Numbers.of_steps(site.in_front[::-1], rank, given)
    result = _of_result(site, given, None if image.shift is None else _sums(site, weights, image))
    for place, factor in ((site.linear.image, image.scale_factor), (INIT, _in_front(site, result.scale_factor))):
        weights = weights if factor is None else _scaled(site, weights, place, factor)
    value = passed(site.inner, _linear(site, given, weights), given)
    value = value if result.shift is None else result.applied(value, shift=result.shift)
    return passed(site.outer, value, given)


def _of_result(site: Chain, given: Given, begin: Any) -> Numbers:
    """Return what the ops behind the linear op do to its sums, with what the sums begin with.

    Args:
        site: The chain.
        given: The values that its ways lead to.
        begin: What the ops in front add to the sums, as a factor of these; None for nothing.
    """
    factors = [] if begin is None else [begin]
    for way in site.bias:
        sizes = factor_sizes(producer(site.linear.op.operands[INIT]), 0) or ()
        factors.append(with_unit_dims(given[way], sizes))
    starts = len(factors)
    factors = carried(site.inner, factors, given)
    rank = site.inner[-1].step.op.results[0].type.rank if site.inner else site.linear.op.results[0].type.rank
    factors += [with_unit_dims(given[way], [1] * rank) for each in site.outer for way in each.numbers]

    def compose(*scalars: Any) -> Affine:
        start = None
        for scalar in scalars[:starts]:
            start = scalar if start is None else arith.addf(start, scalar)
        return composed(site.behind, Affine(shift=start), scalars[starts:])

    return Numbers.of(rank, factors, site.of_result, compose)


def _sums(site: Chain, weights: Any, image: Numbers) -> Any:
    """Return what the shift in front of a linear op adds to its sums: the weights of each channel times the shift."""
    loops, walked = site.linear.weight_loops(site.copies), site.linear.loops
    kept = [loop for loop in walked[INIT] if loop in loops]
    read = [loops.index(walked[site.linear.image][dim]) for dim in image.dims]
    maps = [ir.AffineMap.get_identity(len(loops)), dims_map(len(loops), read)]
    maps.append(dims_map(len(loops), map(loops.index, kept)))
    kinds = ["parallel" if loop in kept else "reduction" for loop in loops]
    start = zeros([weights.type.shape[loops.index(loop)] for loop in kept], weights.type.element_type)
    sums = generic([weights, image.shift], start, maps, kinds, multiply_add)
    shape = site.linear.op.results[0].type.shape
    return with_unit_dims(sums, [size if loop in loops else 1 for loop, size in zip(walked[INIT], shape, strict=True)])


def _in_front(site: Chain, scale: Any) -> Any:
    """Return a factor in front of what multiplies behind a linear op as one of the linear op's result."""
    for each in reversed(site.inner):
        scale = moved(each.step.op, scale, back=True) if each.step.is_move and scale is not None else scale
    return scale


def _scaled(site: Chain, weights: Any, place: int, scale: Any) -> Any:
    """Return weights, in front of all copies, times a factor of an operand of the linear op in its place."""
    loops = site.linear.weight_loops(site.copies)
    dims = [loops.index(site.linear.loops[place][dim]) for dim, size in enumerate(scale.type.shape) if size > 1]
    by = with_unit_dims(scale, [size for size in scale.type.shape if size > 1])
    return with_parts(weights, [by], dims, arith.mulf)


def _linear(site: Chain, given: Given, weights: Any) -> Any:
    """Return the sums of the linear op from zeros, with other weights, in front of all copies."""
    for copy in reversed(site.copies):
        weights = repeated(copy, weights)
    factors = site.linear.factors(weights, passed(site.in_front[::-1], given[site.image], given))
    kind = site.linear.op.results[0].type
    return copied(site.linear.op, [*factors, zeros(kind.shape, kind.element_type)]).results[0]
