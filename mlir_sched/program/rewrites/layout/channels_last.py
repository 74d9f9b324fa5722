"""Networks of channels-first convolutions, computed channels last.

Vectors over output channels suit convolutions of any size, stride and number of taps, but they need the channels of
image, filter and result innermost. Which values have channels, and which ops are computed with channels last so that
the least is copied between layouts, is decided for the whole program (:mod:`.choice`), by one rule per kind of op
(:mod:`.rules`). Every such op is replaced by its channels-last form between transposes; those of neighbours cancel.

Some ops are written another way first: what bodies read in order becomes an operand, and numbers that count up become
constants (:mod:`.ordered_reads`). Then element-wise ops are fused, as IREE does later anyhow, so that constants are in
the bodies of ops.

A convolution alone would keep its transposes, so a program with a single convolution is not rewritten.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.layout.channel_dims import Order
from mlir_sched.program.rewrites.layout.choice import choose
from mlir_sched.program.rewrites.layout.ordered_reads import OrderedReads
from mlir_sched.program.rewrites.layout.reading import read
from mlir_sched.program.rewrites.layout.rules import RULES
from mlir_sched.program.rewrites.layout.rules.rule import NAME, Rule
from mlir_sched.program.rewrites.layout.rules.windows import biases
from mlir_sched.program.rewrites.linalg_ops import CONCAT, GENERIC, dim_of, transposed
from mlir_sched.program.rewrites.pass_rewrite import PassRewrite
from mlir_sched.program.rewrites.placed.body import Body
from mlir_sched.program.rewrites.placed.links import Link, Made, Operands, Read, counting
from mlir_sched.program.rewrites.placed.placed_rewrite import PlacedRewrite, PlacedSite
from mlir_sched.program.rewrites.replacement import ops_named
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram

MIN_CONVOLUTIONS = 2
"""Convolutions of a program below which no transposes cancel."""
CANCELLATION = ("canonicalize", "cse")
"""MLIR's passes that compose transposes, and make each once."""


@dataclass(frozen=True)
class LayoutSite(PlacedSite, Body):
    """An op that is computed channels last.

    Attributes:
        rule: The rule of the op.
        orders: How the dims of its values lie in memory; as in the model for those that are not listed.
        first: For a join, another join in front of it whose operands it begins with; None where there is none.
    """

    rule: Rule
    orders: Mapping[Any, Order]
    first: Any = None

    @cached_property
    def links(self) -> list[Link]:
        """The operands that a join begins with, as both joins have them, or what makes a bias and numbers of loops."""
        if self.first is not None:
            return [Operands(self.first, 0), Operands(self.op, self._further)]
        return [*(Link(self.op, 2) for _ in biases(self.op)), *counting(self.op)]

    @cached_property
    def ops(self) -> list[Any]:
        """The op, and the other join, or what makes a bias and numbers of loops."""
        others = (producer(link.value) if self.first is None else link.op for link in self.links)
        return list(dict.fromkeys((self.op, *others)))

    @cached_property
    def leaves(self) -> list[Link]:
        """The values that the result is computed from."""
        if self.first is not None:
            return [Made(self.first, 0), *(Link(self.op, place) for place in range(-self._further, 0))]
        reads = (Read(self.op, number) for number in range(len(self.reads)))
        return [Operands(self.op, 0), *reads, *(Link(each, 0) for each in biases(self.op))]

    @cached_property
    def built(self) -> tuple[Hashable, ...]:
        """How dims are linked, and how they lie in memory."""
        return *map(tuple, self.rule.axes(self.op)), *map(self.order, (*self.inputs, self.result))

    @property
    def any_size(self) -> bool:
        """Whether the replacement is right for other sizes, too."""
        return self.rule.any_size(self.op)

    def order(self, value: Any) -> Order:
        """Return how the dims of a value lie in memory."""
        return self.orders.get(value, tuple(range(value.type.rank)))

    @property
    def _further(self) -> int:
        """The number of operands that it has beside those of the other join."""
        return len(self.op.operands) - len(self.first.operands)


@dataclass(frozen=True)
class FusedElementwise(PassRewrite):
    """Runs IREE's pass that fuses element-wise ops (ElementwiseOpFusion.cpp), which IREE runs later anyhow."""

    name = "fused_elementwise"
    iree_pass = "iree-dispatch-creation-elementwise-op-fusion"

    def finds(self, program: WalkedProgram) -> bool:
        """Say whether the program has such ops."""
        return any(op.name == GENERIC for op in program.ops)


@dataclass(frozen=True)
class ChannelsLast(PlacedRewrite[LayoutSite]):
    """Computes the convolutions and poolings of a network, and what is between them, channels last."""

    name = NAME

    def requires(self, program: WalkedProgram) -> tuple[ProgramRewrite, ...]:  # noqa: ARG002 - for all
        """Return the rewrites of ops that are written another way."""
        return OrderedReads(), FusedElementwise()

    def sites(self, program: WalkedProgram) -> list[LayoutSite]:
        """Return the ops that are computed channels last; none where the program has few convolutions to convert.

        Where every layer reads what all layers before it made, joins begin with the operands of other joins: these are
        read in place of their operands.
        """
        ops = [op for op in program.ops if "conv_1d_ncw" in op.name or "conv_2d_nchw" in op.name]
        if sum(all(map(is_static_f32, op.operands)) for op in ops) < MIN_CONVOLUTIONS:
            return []
        chosen = choose(read(program))
        joins = [op for op in chosen if op.name == CONCAT]
        first = {op: _beginning(op, joins[:number]) for number, op in enumerate(joins)}
        orders = {op: chosen[op] | chosen.get(first.get(op), {}) for op in chosen}
        moved = [op for op in chosen if any([*order] != sorted(order) for order in orders[op].values())]
        return [LayoutSite(op, RULES[op.name], orders[op], first.get(op)) for op in moved]

    def compute(self, site: LayoutSite, *inputs: Any) -> Any:
        """Return the op's result, computed channels last and transposed back."""
        given = [transposed(new, site.order(old)) for old, new in zip(site.inputs, inputs, strict=True)]
        order = site.order(site.result)
        return transposed(site.rule.build(site.op, given, site.order), [order.index(dim) for dim in range(len(order))])

    def mark(self, site: LayoutSite, result: Any) -> None:
        """Mark nothing: the rules mark what carries the mark of the rewrite."""

    def emit(self, module: Any, sites: Sequence[Sequence[LayoutSite]], program: WalkedProgram) -> Any:
        """Emit the passes that cancel transposes behind the replacements."""
        module = super().emit(module, sites, program)
        for name in CANCELLATION:
            transform.ApplyRegisteredPassOp(transform.AnyOpType.get(), ops_named(module, "util.func"), name)
        return module


def _beginning(op: Any, joins: Iterable[Any]) -> Any | None:
    """Return the join that joins most of an op's first operands, and nothing else; None where no join does."""
    shorter = [join for join in joins if len(join.operands) < len(op.operands)]
    alike = [join for join in shorter if dim_of(join) == dim_of(op)]
    begins = (join for join in alike if list(op.operands)[: len(join.operands)] == list(join.operands))
    return max(begins, key=lambda join: len(join.operands), default=None)
