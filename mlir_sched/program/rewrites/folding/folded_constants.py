"""Constants behind linear ops, folded into the weights: what scales and shifts every channel becomes one addition.

PyTorch's batch norm follows a convolution as a subtraction, two products and an addition, with a vector over the
channels each. Every result is then computed with four more numbers, which is as much work as a depthwise convolution.
The weights are scaled instead, once: at compile time where they are constants of the module, when the module is loaded
where they are parameters. What is left is one addition, in which a bias that the sums started with is included.

Folding rounds in another order. For sums of n terms ``w x`` with k products behind them, a result differs from the
exact one by at most ``(n + 2 k + 2) epsilon`` times the sum of all ``|w x|`` and all ``|shifts|``, scaled, in both
programs: every term passes through at most so many roundings (Higham, Accuracy and Stability of Numerical Algorithms,
2002, section 3.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor, transform

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.folding.affine import Affine, applied
from mlir_sched.program.rewrites.folding.chain import Chain, Path
from mlir_sched.program.rewrites.folding.finding import chains, factor_sizes
from mlir_sched.program.rewrites.folding.linear import INIT, source_loops
from mlir_sched.program.rewrites.folding.moves import is_move, moved, repeated
from mlir_sched.program.rewrites.linalg_ops import (
    copied,
    dims_map,
    generic_of_several,
    with_part,
    with_unit_dims,
    zeros,
)
from mlir_sched.program.rewrites.replacement import match_dag, operand_of, producer_of, require_number
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite


@dataclass(frozen=True)
class FoldedConstants(SiteRewrite[Chain]):
    """Scales the weights of linear ops by what scales their results, and adds all that shifts these at once."""

    name = "folded_constants"

    def sites(self, program: ir.Module) -> list[Chain]:
        """Return the chains that scale, or shift more than once."""
        return chains(program)

    def find(self, module: Any, site: Chain, matcher: str) -> Any:
        """Emit a handle on the last ops of all chains of a kind, once what was replaced is gone."""
        transform.ApplyDeadCodeEliminationOp(module)
        return super().find(module, site, matcher)

    def match(self, root: Any, site: Chain) -> None:
        """Emit the comparison of all ops of a chain."""
        transform.MatchOperationNameOp(root, [site.root.name])
        handles = Handles(root)
        for way, op in zip(site.ops, site.made_of(site.root), strict=True):
            match_dag(op, list(op.operands), handles.producer(way))

    def inputs(self, op: Any, site: Chain) -> list[Any]:
        """Emit handles on image, weights, bias and the numbers; fail where something else reads what was scaled."""
        handles = Handles(op)
        for number in range(len(site.along)):
            made = handles.producer(site.along[: number + 1])
            require_number(transform.get_consumers_of_result(transform.AnyOpType.get(), made, 0), 1)
        return list(map(handles.value, site.leaves))

    def compute(self, site: Chain, *inputs: Any) -> Any:
        """Return the result from scaled weights, plus what shifts it."""
        given = dict(zip(site.leaves, inputs, strict=True))
        numbers = _Numbers.of(site, given)
        value = _scaled(site, given, numbers)
        for step in site.steps:
            value = repeated(step.op, value) if step.is_move else value
        return value if numbers.shift is None else with_part(value, numbers.shift, numbers.dims, arith.addf)

    def marked(self, result: Any) -> Any:
        """Return the addition, or else the linear op, in front of moves."""
        op = producer(result)
        while is_move(op):
            op = producer(op.operands[0])
        return op


class Handles:
    """Handles on what ways from a last op lead to, each emitted once."""

    def __init__(self, root: Any) -> None:
        self._made: dict[Path, Any] = {(): root}

    def producer(self, way: Path) -> Any:
        """Emit a handle on the op that a way leads to."""
        if way not in self._made:
            self._made[way] = producer_of(self.producer(way[:-1]), way[-1])
        return self._made[way]

    def value(self, way: Path) -> Any:
        """Emit a handle on the value that a way leads to."""
        return operand_of(self.producer(way[:-1]), way[-1])


@dataclass(frozen=True)
class _Numbers:
    """What a chain does to each channel of its result.

    Attributes:
        dims: The dimensions of the result that channels lie along.
        sizes: Sizes of the numbers as factors of the result (:mod:`.moves`).
        scale: A tensor over these dimensions; None for 1.
        shift: A tensor over these dimensions; None for 0.
    """

    dims: tuple[int, ...]
    sizes: tuple[int, ...]
    scale: Any
    shift: Any

    @staticmethod
    def of(site: Chain, given: Mapping[Path, Any]) -> _Numbers:
        """Return the numbers, computed from the values that the ways of a chain lead to."""
        factors = _factors(site, given)
        shapes = [list(factor.type.shape) for factor in factors]
        sizes = [max(each) for each in zip([1] * site.result.type.rank, *shapes, strict=True)]
        dims = [dim for dim, size in enumerate(sizes) if size > 1]
        own = [[dim for dim, size in enumerate(shape) if size > 1] for shape in shapes]
        maps = [dims_map(len(dims), map(dims.index, each)) for each in own]
        vectors = [with_unit_dims(each, [s for s in each.type.shape if s > 1]) for each in factors]
        wanted = [name for name, is_made in (("scale", site.scales), ("shift", site.shifts)) if is_made]
        inits = [tensor.empty([sizes[dim] for dim in dims], ir.F32Type.get()) for _ in wanted]
        maps += [ir.AffineMap.get_identity(len(dims))] * len(inits)

        def body(*scalars: Any) -> Sequence[Any]:
            form = _composed(site, scalars)
            return [getattr(form, name) for name in wanted]

        made = dict(zip(wanted, generic_of_several(vectors, inits, maps, ["parallel"] * len(dims), body), strict=True))
        return _Numbers(tuple(dims), tuple(sizes), made.get("scale"), made.get("shift"))


def _factors(site: Chain, given: Mapping[Path, Any]) -> list[Any]:
    """Return the bias, if there is one, and the numbers of all steps as factors of the result, in this order."""
    factors = list[Any]()
    if site.has_bias:
        factors.append(with_unit_dims(given[site.bias], factor_sizes(producer(site.linear.op.operands[INIT]), 0) or ()))
    ways = dict(site.numbers)
    for step in site.steps:
        factors = [moved(step.op, factor) for factor in factors] if step.is_move else factors
        for way in ways.get(step, ()):
            factors.append(with_unit_dims(given[way], factor_sizes(step.op, way[-1]) or ()))
    return factors


def _composed(site: Chain, scalars: Sequence[Any]) -> Affine:
    """Emit what a chain does to a number, given the elements of its :func:`_factors`."""
    left = iter(scalars)
    form: Affine | None = Affine(shift=next(left) if site.has_bias else None)
    for step, ways in site.numbers:
        form = form and applied(step.op, step.place, form, {way[-1]: next(left) for way in ways})
    assert form is not None
    return form


def _scaled(site: Chain, given: Mapping[Path, Any], numbers: _Numbers) -> Any:
    """Return the result of the linear op from zeros, with its weights scaled where the chain scales."""
    op, weights = site.linear.op, given[site.weights]
    if numbers.scale is not None:
        weights = _scaled_weights(site, weights, with_unit_dims(numbers.scale, numbers.sizes))
    for copy in reversed(site.copies):
        weights = repeated(copy, weights)
    kind = op.results[0].type
    factors = {site.linear.weights: weights, 1 - site.linear.weights: given[site.image]}
    return copied(op, [factors[0], factors[1], zeros(kind.shape, kind.element_type)]).results[0]


def _scaled_weights(site: Chain, weights: Any, scale: Any) -> Any:
    """Return weights, in front of all copies, times a factor of the chain's result."""
    for step in reversed(site.steps):
        scale = moved(step.op, scale, back=True) if step.is_move else scale
    dims = [site.linear.channels[dim] for dim, size in enumerate(scale.type.shape) if size > 1]
    for copy in site.copies:
        loops = source_loops(copy) or []
        dims = [loops.index(dim) for dim in dims]
    factors = with_unit_dims(scale, [size for size in scale.type.shape if size > 1])
    return with_part(weights, factors, dims, arith.mulf)
