"""Attention as ops on tensors: the part that all ways to compute attention share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from iree.compiler.dialects import tensor

from mlir_sched.program.rewrites.linalg_ops import dims_map, generic, product_and_sum

ATTENTION = "iree_linalg_ext.attention"


@dataclass(frozen=True)
class Walked:
    """A tensor with the loops that walk its dimensions, a letter each, as in ``einsum``."""

    value: Any
    loops: str

    def size(self, loop: str) -> int:
        """Return the iterations of a loop that walks a dimension."""
        return int(self.value.type.shape[self.loops.index(loop)])


@dataclass(frozen=True)
class AttentionOp:
    """An attention that is to be computed.

    Attributes:
        queries, keys, values: Its operands.
        mask: What is added to the scores, or, as booleans, says which scores count; None for nothing.
        scores: The loops of the scores, that of the keys last.
        result: The loops of the result.
        score: Returns a score, given a product of a query and a key, and the mask's element if there is any.
        heads_beside_tokens: Whether queries and values are transposes of tensors in which each token has all heads; the
            result is then taken to be transposed back.
    """

    queries: Walked
    keys: Walked
    values: Walked
    mask: Walked | None
    scores: str
    result: str
    score: Callable[..., Any]
    heads_beside_tokens: bool = False

    def scored(self) -> Any:
        """Return the scores: sums of products, scaled and masked."""
        products = Walked(product_of(self.queries, self.keys, self.scores), self.scores)
        read = [products, *([self.mask] if self.mask else [])]
        maps = [dims_map(len(self.scores), map(self.scores.index, each.loops)) for each in (*read, products)]
        empty = tensor.empty(products.value.type.shape, products.value.type.element_type)

        def body(*scalars: Any) -> Any:
            *known, _ = scalars
            return self.score(*known)

        return generic([each.value for each in read], empty, maps, ["parallel"] * len(self.scores), body)


def product_of(left: Walked, right: Walked, result: str) -> Any:
    """Return the sums of products over the loops that the result lacks."""
    return product_and_sum(left.value, right.value, left.loops, right.loops, result)
