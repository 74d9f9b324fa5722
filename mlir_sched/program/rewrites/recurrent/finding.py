"""The products of slices of a sequence that are worth one product of the whole sequence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil, prod
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import captured, producer
from mlir_sched.program.rewrites.constant_values import is_constant, scalar_constant
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.dag_site import found_again
from mlir_sched.program.rewrites.linalg_ops import (
    COLLAPSE,
    EXPAND,
    SLICE,
    counts,
    depends_on,
    is_elementwise,
    maps_of,
    region_of,
)
from mlir_sched.program.rewrites.linear.linear_op import INIT, Linear, is_copy, linear_ops, starts_with_zeros
from mlir_sched.program.rewrites.linear.step import Step
from mlir_sched.program.rewrites.recurrent.step_product import StepProduct
from mlir_sched.program.rewrites.walked_program import WalkedProgram

LOOP = "scf.for"


def step_products(program: WalkedProgram) -> list[StepProduct]:
    """Return the products that pay and that a matcher finds again, those with most ops behind them first."""
    found = [site for begin in program.known(linear_ops) if (site := _site(begin, program.constants))]
    return _settled(sorted(found, key=lambda site: -len(site.steps)), program)


def _settled(sites: Sequence[StepProduct], program: WalkedProgram) -> list[StepProduct]:
    """Return the sites of wholes that pay without the sites that are left out."""
    wholes: dict[Any, list[StepProduct]] = {}
    for site in found_again(sites, program):
        wholes.setdefault(site.whole, []).append(site)
    kept = [site for alike in wholes.values() if pays(alike) for site in alike]
    ordered = [site for site in sites if site in kept]
    return ordered if len(ordered) == len(sites) else _settled(ordered, program)


def pays(alike: Iterable[StepProduct]) -> bool:
    """Say whether one product of a whole sequence costs less than products of its slices.

    For every further slice they read the weights once more; for every row that no slice takes, it multiplies by them
    once more. Their results are small enough to stay in the caches for their reader; those of the whole sequence, at
    worst, are written and read once more.

    Args:
        alike: Products of slices of one sequence that the whole product replaces.
    """
    slices = {tuple(site.offsets): site for site in alike}
    runs = [runs_of(site.linear.op, site.sequence) for site in slices.values()]
    if not slices or 0 in runs:
        return False
    site, *_ = slices.values()
    rows = sum(each.rows * times for each, times in zip(slices.values(), runs, strict=True))
    weights = prod(site.linear.op.operands[site.linear.weights].type.shape)
    results = site.all_rows * prod(site.linear.op.results[0].type.shape[1:])
    further = sum(runs) - 1
    return site.all_rows - rows <= further and further * weights > 2 * results


def runs_of(op: Any, value: Any) -> int:
    """Return how often an op runs for every time that a value is made; 0 where that is not known.

    Args:
        op: The op.
        value: A value that is made outside of the loops around the op, or beside the op.
    """
    made, home = value.owner, op.parent.operation
    outside = (made.owner if isinstance(made, ir.Block) else made.parent).operation
    runs = 1
    while home != outside:
        if home.name != LOOP or home.parent is None:
            return 0
        runs *= _iterations(home)
        home = home.parent.operation
    return runs if len(outside.regions) == 1 and len(outside.regions[0].blocks) == 1 else 0


def _iterations(loop: Any) -> int:
    """Return how often the body of a loop runs; 0 where that is not known."""
    begin, end, step = (scalar_constant(value) for value in list(loop.operands)[:3])
    if begin is None or end is None or step is None:
        return 0
    return max(ceil((end - begin) / step), 0)


def _site(begin: Linear, globals_: frozenset[str]) -> StepProduct | None:
    """Return the product of a slice that a linear op is, with what follows; None where it is none."""
    op = begin.op
    if not starts_with_zeros(op) or not _keeps_rows(begin):
        return None
    before, value = list[Any](), op.operands[begin.image]
    while (made := producer(value)) is not None and made.name in (COLLAPSE, EXPAND):
        before.append(made)
        value = made.operands[0]
    if made is None or made.name != SLICE:
        return None
    site = StepProduct(begin, tuple(_behind(begin, globals_)), (*before, made))
    return site if _takes_rows(site) else None


def _keeps_rows(begin: Linear) -> bool:
    """Say whether each row of the result, along its first dimension, is computed from the same row of the image."""
    maps = maps_of(begin.op)
    image, result = maps[begin.image], maps[INIT]
    if not len(image.results) or not len(result.results) or image.results[0] != result.results[0]:
        return False
    rows, others = result.results[0], [*image.results][1:] + [*maps[begin.weights].results]
    return isinstance(rows, ir.AffineDimExpr) and not any(depends_on(expr, rows) for expr in others)


def _takes_rows(site: StepProduct) -> bool:
    """Say whether a slice of a static f32 tensor takes rows, one behind the other, and all that the others have."""
    op, image = site.slice, site.linear.op.operands[site.linear.image]
    if not is_static_f32(site.sequence) or not 0 < site.lead < site.sequence.type.rank:
        return False
    offsets, sizes, strides = region_of(op)
    others, static = list(image.type.shape)[1:], [sizes[site.lead :], list(site.sequence.type.shape)[site.lead :]]
    fixed = {*strides} == {1} and not any(offsets[site.lead :]) and len(op.operands) == 1 + _varying(offsets)
    return fixed and static == [others, others] and prod(site.taken) == site.rows


def _varying(numbers: Sequence[int]) -> int:
    """Return how many offsets of a slice are no constants."""
    return list(numbers).count(ir.ShapedType.get_dynamic_stride_or_offset())


def _behind(begin: Linear, globals_: frozenset[str]) -> Iterator[Step]:
    """Yield the element-wise ops behind a linear op that do the same to every row."""
    value = begin.op.results[0]
    while step := Step.reading(value):
        if step.op.parent != begin.op.parent or not _is_alike_for_rows(step, value, globals_):
            return
        yield step
        value = step.op.results[0]


def _is_alike_for_rows(step: Step, value: Any, globals_: frozenset[str]) -> bool:
    """Say whether an op computes each element of a value with constants that are the same for all rows."""
    op = step.op
    if not is_elementwise(op) or is_copy(op) or op.results[0].type != value.type:
        return False
    maps, (*_, start) = maps_of(op), op.regions[0].blocks[0].arguments
    numbers = [op.operands[place] for place in step.numbers]
    constant = all(is_static_f32(each) and is_constant(each, globals_) for each in numbers)
    rows = ir.AffineDimExpr.get(0)
    alike = not any(depends_on(expr, rows) for place in step.numbers for expr in maps[place].results)
    whole = step.place < len(op.operands) - 1 and maps[step.place] == maps[-1] and not [*start.uses]
    return constant and alike and whole and not captured(op) and not counts(op)
