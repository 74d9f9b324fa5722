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

from mlir_sched.compiler.operations import producer, source_of
from mlir_sched.program.rewrites.dag_site import DagRewrite
from mlir_sched.program.rewrites.folding.affine_run import AffineRun
from mlir_sched.program.rewrites.folding.chain import Chain
from mlir_sched.program.rewrites.folding.finding import sites
from mlir_sched.program.rewrites.folding.moved_constants import MovedConstants
from mlir_sched.program.rewrites.folding.replacement import replacement
from mlir_sched.program.rewrites.linear.moves import is_move
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class FoldedConstants(DagRewrite[Chain | AffineRun]):
    """Scales the weights of linear ops by what scales their results, and adds all that shifts these at once.

    What scales and shifts other tensors becomes one product and one addition.
    """

    name = "folded_constants"

    def requires(self, program: WalkedProgram) -> tuple[ProgramRewrite, ...]:
        """Return what moves constants to where weights can take them."""
        del program
        return (MovedConstants(),)

    def sites(self, program: WalkedProgram) -> list[Chain | AffineRun]:
        """Return the chains without which there is less to compute, and then what else scales and shifts."""
        return sites(program)

    def compute(self, site: Chain | AffineRun, *inputs: Any) -> Any:
        """Return the result from scaled weights, plus what shifts it; or from one product and one addition."""
        given = dict(zip(site.leaves, inputs, strict=True))
        return replacement(site, given) if isinstance(site, Chain) else site.replacement(given)

    def marked(self, result: Any) -> Any:
        """Return the addition, or else the linear op, in front of moves."""
        return producer(source_of(result, is_move))
