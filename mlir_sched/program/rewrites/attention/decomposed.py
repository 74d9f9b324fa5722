"""Attention as two products with a softmax between them.

PyTorch's ``scaled_dot_product_attention`` arrives in IREE as one op, ``iree_linalg_ext.attention``, which becomes one
dispatch that no transform module schedules. IREE 3.13 compiles this dispatch well for CPUs where heads are narrow, and
badly where they are wide. The rewrite puts in place what the op means: scores, which are products of queries and keys,
scaled and masked; their softmax; products of these weights and the values. Each becomes a dispatch that can have a
script, and is fast without one, too. Attentions of chosen shapes become one dispatch (:mod:`.fused`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, linalg, tensor

from mlir_sched.compiler.operations import constant_of, producer, source_of
from mlir_sched.program.rewrites.attention.fused import BEHIND, can_be_fused, in_one_dispatch
from mlir_sched.program.rewrites.attention.ops import ATTENTION, AttentionOp, Walked, product_of
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.linalg_ops import copied_body, is_static, maps_of, number, zero
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.site_kind import SiteKind
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.program.rewrites.walked_program import WalkedProgram

MIN_SCORES = 1 << 18
"""Scores of an attention below which one dispatch is not tried: 1 MiB, which a core's L2 cache holds. Below there is no
traffic with memory to save, and less time to gain than the trial costs in search."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SCALAR_OPS = ("arith.", "math.", "iree_linalg_ext.yield")
"""What the body of an attention, which changes a score, may be made of."""


@dataclass(frozen=True)
class AttentionSite(OpSite):
    """One attention of a program; operands are queries, keys, values, scale, a mask or none, and the init.

    Attributes:
        op: The op.
        dims: The loops that walk each operand's dimensions, in the order of the dimensions.
        scores: The loops that walk the scores' dimensions: those of the result that queries have, then the keys'.
    """

    dims: tuple[tuple[int, ...], ...]
    scores: tuple[int, ...]

    @property
    def shape(self) -> str:
        """Sizes of the scores' loops, the keys last, and of the features of a value: ``12x128x128x64``."""
        features = [loop for loop in self.dims[2] if loop not in (*self.scores, *self.dims[1])]
        return "x".join(str(self._sizes[loop]) for loop in (*self.scores, *features))

    @property
    def can_be_fused(self) -> bool:
        """Whether it may become one dispatch; a dispatch that takes a number, such as the scale, has no script."""
        if constant_of(self.op.operands[3]) is None:
            return False
        _, keys, values, *_, result = _walked(self, self.op.operands)
        return can_be_fused(keys, values, _letters(self.scores), result.loops)

    @property
    def scores_per_call(self) -> int:
        """Number of its scores."""
        return prod(self._sizes[loop] for loop in self.scores)

    @property
    def _sizes(self) -> dict[int, int]:
        """Iterations of each loop."""
        walked = [(dims, value.type.shape) for dims, value in zip(self.dims, self.op.operands, strict=True) if dims]
        return {loop: size for dims, shape in walked for loop, size in zip(dims, shape, strict=True)}


@dataclass(frozen=True)
class DecomposedAttention(OpRewrite[AttentionSite]):
    """Computes every attention as a product, a softmax and a product.

    Attributes:
        fused: The attentions that become one dispatch, by :attr:`AttentionSite.shape`.
    """

    fused: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """``decomposed_attention``, with the shapes that become one dispatch."""
        return f"{self.symbol}+{self.fusing}" if self.fused else self.symbol

    @property
    def fusing(self) -> str:
        """Name of what it does to attentions that become one dispatch."""
        return f"fused_attention({','.join(self.fused)})"

    @property
    def symbol(self) -> str:
        """Name of the rewrite's sequence."""
        return "decomposed_attention"

    def sites(self, program: WalkedProgram) -> list[AttentionSite]:
        """Return the attentions on static f32 tensors, with one loop over keys."""
        return [site for op in program.ops if op.name == ATTENTION and (site := _site(op)) is not None]

    def compute(self, site: AttentionSite, *inputs: Any) -> Any:
        """Return the attention."""
        queries, keys, values, scale, *mask, init = _walked(site, inputs)

        def score(product: Any, *masked: Any) -> Any:
            changed = copied_body(site.op, [arith.mulf(product, scale.value)])
            return _masked(changed, *masked) if masked else changed

        masked_by = mask[0] if mask else None
        scores, beside = _letters(site.scores), _is_transposed(site.op.operands[0])
        attention = AttentionOp(queries, keys, values, masked_by, scores, init.loops, score, heads_beside_tokens=beside)
        if site.shape in self.fused:
            return in_one_dispatch(attention)
        return _in_three_dispatches(attention)

    def marked(self, result: Any) -> Any:
        """Return the dispatch, or the second product: what comes behind may be cancelled."""
        return producer(source_of(result, lambda op: op.name in BEHIND))


@dataclass(frozen=True)
class Attentions(SiteKind):
    """The attentions of a transformer, which three dispatches compute, or one."""

    own, other = "decomposed", "fused"

    def site_name(self, shape: str) -> str:
        """Return the shape behind the word ``attention``."""
        return f"attention {shape}"

    def rewrite_name(self, shape: str) -> str:
        """Return the name of what is done to attentions that become one dispatch."""
        return DecomposedAttention((shape,)).fusing

    def has_choice(self, rewrites: Sequence[ProgramRewrite]) -> bool:
        """Say whether attentions are decomposed."""
        return any(isinstance(rewrite, DecomposedAttention) for rewrite in rewrites)

    def with_other(self, rewrites: tuple[ProgramRewrite, ...], shapes: tuple[str, ...]) -> tuple[ProgramRewrite, ...]:
        """Return the rewrites that decompose all other attentions."""
        fused = DecomposedAttention(shapes)
        return tuple(fused if isinstance(rewrite, DecomposedAttention) else rewrite for rewrite in rewrites)

    def shapes(self, program: StagedProgram) -> list[str]:
        """Return the shapes of the attentions that may become one dispatch, with :data:`MIN_SCORES` and more."""
        sites = (site for site, *_ in program.found(DecomposedAttention()).values())
        return [site.shape for site in sites if site.can_be_fused and site.scores_per_call >= MIN_SCORES]


def _site(op: Any) -> AttentionSite | None:
    """Return an attention that can be written as ops of linalg; None for any other."""
    queries, keys, values, scale, *mask, init = op.operands
    if not all(map(is_static_f32, (queries, keys, values, init))) or not isinstance(scale.type, ir.F32Type):
        return None
    maps = maps_of(op)
    if not all(each.is_projected_permutation for each in maps) or not _computes_with_the_score_alone(op):
        return None
    dims = tuple(tuple(ir.AffineDimExpr(expr).position for expr in each.results) for each in maps)
    of_queries, of_keys, of_values, *_, of_result = dims
    walked = [loop for loop in of_values if loop not in of_result]
    scores = (*(loop for loop in of_result if loop in of_queries), *walked)
    summed = {*of_queries, *of_keys} - {*scores}
    if len(walked) != 1 or not {*walked} <= {*of_keys} or not summed <= {*of_queries} & {*of_keys}:
        return None
    if not {*of_result} <= {*scores, *of_values}:
        return None
    if any(not _is_mask(value) or not {*dims[4]} <= {*scores} for value in mask):
        return None
    return AttentionSite(op, dims, scores)


def _walked(site: AttentionSite, values: Iterable[Any]) -> list[Walked]:
    """Return values of the operands of an attention with their loops."""
    return [Walked(value, _letters(loops)) for value, loops in zip(values, site.dims, strict=True)]


def _is_transposed(value: Any) -> bool:
    """Say whether a value is a transpose, perhaps without its dimensions of one element."""
    op = producer(value)
    if op is not None and op.name == "tensor.collapse_shape":
        op = producer(op.operands[0])
    return op is not None and op.name == "linalg.transpose"


def _is_mask(value: Any) -> bool:
    """Say whether a value is a mask that is added to scores, or, as booleans, says which scores count."""
    return is_static(value) and str(value.type.element_type) in ("f32", "i1")


def _computes_with_the_score_alone(op: Any) -> bool:
    """Say whether the body makes a new score from a score and constants of its own, and nothing else."""
    inside = [inner.operation for inner in op.regions[0].blocks[0]]
    known = all(inner.name.startswith(_SCALAR_OPS) for inner in inside)
    return known and all(producer(v) is None or producer(v) in inside for inner in inside for v in inner.operands)


def _letters(loops: Sequence[int]) -> str:
    return "".join(_LETTERS[loop] for loop in loops)


def _in_three_dispatches(attention: AttentionOp) -> Any:
    """Return an attention as a product, a softmax and a product, each of which becomes a dispatch."""
    scores = attention.scored()
    empty = tensor.empty(scores.type.shape, scores.type.element_type)
    weights = linalg.softmax([scores.type], scores, empty, scores.type.rank - 1)
    return product_of(Walked(weights, attention.scores), attention.values, attention.result)


def _masked(score: Any, mask: Any) -> Any:
    """Return a score plus its mask; a boolean mask is 0 where it is true, and minus infinity elsewhere."""
    if isinstance(mask.type, ir.F32Type):
        return arith.addf(score, mask)
    return arith.addf(score, arith.select(mask, zero(score.type), number(score.type, float("-inf"))))
