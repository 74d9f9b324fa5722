"""Constants around linear ops, folded into the weights: what scales and shifts every channel becomes one addition.

PyTorch's batch norm follows a convolution as a subtraction, two products and an addition, with a vector over the
channels each. Every result is then computed with four more numbers, which is as much work as a depthwise convolution.
The weights are scaled instead, once: at compile time where they are constants of the module, when the module is loaded
where they are parameters. What is left is one addition, in which a bias that the sums started with is included, and
what the weights of each channel add up to, times the shift of what they multiply.

Folding rounds in another order. For sums of n terms ``w x`` with k products around them, a result differs from the
exact one by at most ``(n + 2 k + 2) epsilon`` times the sum of all ``|w x|`` and all ``|shifts|``, scaled, in both
programs: every term passes through at most so many roundings (Higham, Accuracy and Stability of Numerical Algorithms,
2002, section 3.1). A shift in front of the linear op is one of the terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import producer
from mlir_sched.library.matcher import append_comparison_with_constants
from mlir_sched.program.rewrites.folding.chain import Chain, Path
from mlir_sched.program.rewrites.folding.finding import chains
from mlir_sched.program.rewrites.folding.moves import is_move
from mlir_sched.program.rewrites.folding.replacement import replacement
from mlir_sched.program.rewrites.replacement import (
    append_trial,
    match_dag,
    operand_of,
    passing,
    producer_of,
    require_number,
)
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite


@dataclass(frozen=True)
class FoldedConstants(SiteRewrite[Chain]):
    """Scales the weights of linear ops by what scales their results, and adds all that shifts these at once."""

    name = "folded_constants"

    def sites(self, program: ir.Module) -> list[Chain]:
        """Return the chains without which there is less to compute."""
        return chains(program)

    def append_kind(self, library: ir.Module, symbol: str, site: Chain) -> None:
        """Append the replacement of a kind, its matcher, and a trial of what no matcher may contain."""
        super().append_kind(library, symbol, site)
        if site.with_constants:
            append_trial(library, _trial(f"match_{symbol}"), lambda root: self._compare_constants(root, site))

    def find(self, module: Any, site: Chain, matcher: str) -> Any:
        """Emit a handle on the last ops of all chains of a kind, once what was replaced is gone."""
        transform.ApplyDeadCodeEliminationOp(module)
        found = super().find(module, site, matcher)
        return passing(found, _trial(matcher)) if site.with_constants else found

    def match(self, root: Any, site: Chain) -> None:
        """Emit the comparison of all ops of a chain, but of bodies that use constants from outside."""
        transform.MatchOperationNameOp(root, [site.root.name])
        handles = Handles(root)
        for way, op in zip(site.ops, site.made_of(site.root), strict=True):
            if way in site.with_constants:
                transform.MatchOperationNameOp(handles.producer(way), [op.name])
            else:
                match_dag(op, list(op.operands), handles.producer(way))

    def _compare_constants(self, root: Any, site: Chain) -> Any:
        """Emit the comparison of the bodies that use constants from outside, and return the handle on the root."""
        handles = Handles(root)
        for way, op in site.with_constants.items():
            append_comparison_with_constants(handles.producer(way), op)
        return root

    def inputs(self, op: Any, site: Chain) -> list[Any]:
        """Emit handles on image, weights, bias and the numbers; fail where something else reads what was scaled."""
        handles = Handles(op)
        for way in site.read_once:
            require_number(transform.get_consumers_of_result(transform.AnyOpType.get(), handles.producer(way), 0), 1)
        return list(map(handles.value, site.leaves))

    def compute(self, site: Chain, *inputs: Any) -> Any:
        """Return the result from scaled weights, plus what shifts it."""
        return replacement(site, dict(zip(site.leaves, inputs, strict=True)))

    def marked(self, result: Any) -> Any:
        """Return the addition, or else the linear op, in front of moves."""
        op = producer(result)
        while is_move(op):
            op = producer(op.operands[0])
        return op


def _trial(matcher: str) -> str:
    """Return the symbol of the trial that goes with a matcher."""
    return f"{matcher}_with_constants"


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
