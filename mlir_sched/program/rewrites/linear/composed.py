"""What the ops of a chain do to each channel, computed from their numbers by one op, and what is left of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor

from mlir_sched.program.rewrites.dag_site import Path
from mlir_sched.program.rewrites.linalg_ops import (
    copied,
    dims_map,
    generic_of_several,
    number,
    with_parts,
    with_unit_dims,
)
from mlir_sched.program.rewrites.linear.affine import Affine
from mlir_sched.program.rewrites.linear.moves import factor_sizes, moved, repeated
from mlir_sched.program.rewrites.linear.placed import PlacedStep
from mlir_sched.program.rewrites.linear.step import SCALE, Parts, parts

Given = Mapping[Path, Any]
"""The values that the ways of a chain lead to."""


@dataclass(frozen=True)
class Numbers:
    """What ops do to each channel of a tensor.

    Attributes:
        dims: The dimensions of the tensor that channels lie along.
        sizes: Sizes of the numbers as factors of the tensor (:mod:`.moves`).
        scale: A tensor over these dimensions; None for 1.
        shift: A tensor over these dimensions; None for 0.
    """

    dims: tuple[int, ...]
    sizes: tuple[int, ...]
    scale: Any
    shift: Any

    @staticmethod
    def of(rank: int, factors: Sequence[Any], made: Parts, compose: Callable[..., Affine]) -> Numbers:
        """Return the numbers, computed by one op.

        Args:
            rank: Dimensions of the tensor.
            factors: What they are computed from, as factors of the tensor.
            made: Whether they scale, and whether they shift.
            compose: Emits what is done to an element, given an element of each factor.
        """
        shapes = [list(factor.type.shape) for factor in factors]
        sizes = [max(each) for each in zip([1] * rank, *shapes, strict=True)]
        dims = [dim for dim, size in enumerate(sizes) if size > 1]
        own = [[dim for dim, size in enumerate(shape) if size > 1] for shape in shapes]
        maps = [dims_map(len(dims), map(dims.index, each)) for each in own]
        vectors = [with_unit_dims(each, [s for s in each.type.shape if s > 1]) for each in factors]
        wanted = [name for name, is_made in (("scale", made.scales), ("shift", made.shifts)) if is_made]
        inits = [tensor.empty([sizes[dim] for dim in dims], ir.F32Type.get()) for _ in wanted]
        maps += [ir.AffineMap.get_identity(len(dims))] * len(inits)

        def body(*scalars: Any) -> Sequence[Any]:
            form = compose(*scalars[: len(factors)])
            return [getattr(form, name) for name in wanted]

        computed = generic_of_several(vectors, inits, maps, ["parallel"] * len(dims), body) if wanted else []
        found = dict(zip(wanted, computed, strict=True))
        return Numbers(tuple(dims), tuple(sizes), found.get("scale"), found.get("shift"))

    @staticmethod
    def of_steps(steps: Sequence[PlacedStep], rank: int, given: Given) -> Numbers:
        """Return what ops, in their order, do to each channel of a tensor of so many dimensions behind them."""
        factors, made = carried(steps, [], given), parts([each.step for each in steps]) or Parts()
        return Numbers.of(rank, factors, made, lambda *scalars: composed(steps, Affine(), scalars))

    @property
    def scale_factor(self) -> Any:
        """The scale as a factor of the tensor; None for 1."""
        return None if self.scale is None else with_unit_dims(self.scale, self.sizes)

    def applied(self, value: Any, *, scale: Any = None, shift: Any = None) -> Any:
        """Return the tensor times the scale, plus the shift, as far as they are given, by one op."""
        made = {op: numbers for op, numbers in ((arith.mulf, scale), (arith.addf, shift)) if numbers is not None}

        def combine(x: Any, *scalars: Any) -> Any:
            for op, scalar in zip(made, scalars, strict=True):
                x = op(x, scalar)
            return x

        return with_parts(value, [*made.values()], self.dims, combine)


def carried(steps: Sequence[PlacedStep], factors: Sequence[Any], given: Given) -> list[Any]:
    """Return factors in front of ops, and the numbers of these, as factors of the last op's result.

    Args:
        steps: The ops, in their order.
        factors: Factors of what the first of them reads.
        given: The values that the ways lead to.
    """
    found = list(factors)
    for each in steps:
        found = found if each.step.is_affine else [moved(each.step.op, factor) for factor in found]
        found += [with_unit_dims(given[way], factor_sizes(each.step.op, way[-1]) or ()) for way in each.numbers]
    return found


def passed(steps: Sequence[PlacedStep], value: Any, given: Given) -> Any:
    """Return what ops make of a value, one after the other; what scales or shifts is done elsewhere, and left out."""
    for each in steps:
        if each.step.is_move or each.step.is_padding:
            value = repeated(each.step.op, value)
        elif each.step.multiplies:
            operands = {way[-1]: given[way] for way in each.factors} | {each.step.place: value}
            if each.step.is_attention:
                operands[SCALE] = number(ir.F32Type.get(), 1.0)
            value = copied(each.step.op, [operands[place] for place in range(len(operands))]).results[0]
    return value


def composed(steps: Sequence[PlacedStep], form: Affine, scalars: Sequence[Any]) -> Affine:
    """Emit what ops do to a number, given an element of each of their numbers."""
    left = iter(scalars)
    for each in steps:
        made = each.step.applied(form, {way[-1]: next(left) for way in each.numbers})
        assert made is not None
        form = made
    return form
