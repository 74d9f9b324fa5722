"""Products of the steps of a sequence with the same weights, as one product of the whole sequence.

A recurrent network multiplies every step of its input by the same weights, beside its state by others. Step by step,
all weights are read from the caches, or from memory, again for a product of a few rows. Of the whole sequence they are
read once, for as many rows as the sequence has, and each step takes its rows of the result. Products of the state, or
of anything else that a step makes, stay as they are: they are no slices of one tensor.

In a loop over the steps the product is computed in front of the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.attributes import REWRITTEN
from mlir_sched.compiler.operations import producer, source_of
from mlir_sched.program.rewrites.dag_site import DagRewrite, Path
from mlir_sched.program.rewrites.linalg_ops import (
    BARRIER,
    COLLAPSE,
    EXPAND,
    SLICE,
    barrier,
    collapse,
    expand,
    resized,
    slice_of,
    transposed,
    zeros,
)
from mlir_sched.program.rewrites.recurrent.finding import LOOP, step_products
from mlir_sched.program.rewrites.recurrent.step_product import StepProduct
from mlir_sched.program.rewrites.replacement import ops_named, require_number
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class JoinedSteps(DagRewrite[StepProduct]):
    """Computes each product as rows of one of the whole sequence, which all of them share."""

    name = "joined_steps"

    def sites(self, program: WalkedProgram) -> list[StepProduct]:
        """Return the products of slices that are worth one product of their whole sequence."""
        return step_products(program)

    def compute(self, site: StepProduct, *inputs: Any) -> Any:
        """Return the rows of the slice from the product of the whole sequence.

        Where they lie side by side, a barrier keeps them a tensor of their own, which is no copy: what reads the rows
        of one step is then the same dispatch as what reads those of another one.
        """
        given = dict(zip(site.leaves, inputs, strict=True))
        value = _product(site, given)
        columns = list(value.type.shape[1:])
        rows = [[*range(site.lead)], *([site.lead + dim] for dim in range(len(columns)))]
        if site.lead > 1:
            value = expand(value, rows, [*_in_order(site, site.sequence.type.shape), *columns])
        varying = iter([given[way] for way in site.varying])
        offsets = [next(varying) if isinstance(offset, ir.Value) else offset for offset in site.offsets]
        sizes = [*_in_order(site, site.taken), *columns]
        value = slice_of(value, [*_in_order(site, offsets), *[0] * len(columns)], sizes)
        value = value if site.varying or not site.is_contiguous else barrier(value)
        return collapse(value, rows) if site.lead > 1 else value

    def marked(self, result: Any) -> Any:
        """Return the last op of the product of the whole sequence."""
        return producer(source_of(result, lambda op: op.name in (BARRIER, COLLAPSE, EXPAND, SLICE)))

    def emit(self, module: Any, sites: Sequence[Sequence[StepProduct]], program: WalkedProgram) -> Any:
        """Emit the replacements, and leave one product of each; see :meth:`SiteRewrite.emit`."""
        module = super().emit(module, sites, program)
        every = [site for alike in sites for site in alike]
        if any(site.root.parent.operation.name == LOOP for site in every):
            transform.ApplyLoopInvariantCodeMotionOp(ops_named(module, LOOP))
        transform.ApplyCommonSubexpressionEliminationOp(module)
        wholes = {site.whole: site.root.name for site in every}
        for name in dict.fromkeys(wholes.values()):
            made = ops_named(module, name, {REWRITTEN: ir.StringAttr.get(self.name)})
            require_number(made, [*wholes.values()].count(name))
        return module


def _in_order(site: StepProduct, each: Sequence[Any]) -> list[Any]:
    """Return what belongs to each dimension of the rows in the order of the product of the whole sequence."""
    return [each[dim] for dim in site.order]


def _product(site: StepProduct, given: Mapping[Path, Any]) -> Any:
    """Return the product of the whole sequence, as (rows, columns), with what follows it."""
    op, image = site.linear.op, given[site.sequence_way]
    if site.order != [*range(site.lead)]:
        image = transposed(image, [*site.order, *range(site.lead, image.type.rank)])
    if site.lead > 1:
        image = collapse(image, [[*range(site.lead)], *([dim] for dim in range(site.lead, image.type.rank))])
    kind = op.results[0].type
    shape = [site.all_rows, *kind.shape[1:]]
    value = resized(op, [*site.linear.factors(given[site.weights], image), zeros(shape, kind.element_type)])
    for each in site.behind:
        value = each.step.repeated(value, {way[-1]: given[way] for way in each.numbers})
    return value
