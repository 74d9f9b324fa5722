"""Networks of channels-first convolutions, computed channels last.

Vectors over output channels suit convolutions of any size, stride and number of taps, but they need the channels of
image, filter and result innermost. Which values have channels, and which ops are computed with channels last so that
the least is copied between layouts, is decided for the whole program (:mod:`.choice`), by one rule per kind of op
(:mod:`.rules`). Every such op is replaced by its channels-last form between transposes; those of neighbours cancel.

Some ops are written another way first: what bodies read in order becomes an operand (:mod:`.ordered_reads`), and
numbers that count up become constants (:mod:`.constant_ranges`). Then element-wise ops are fused, as IREE does later
anyhow, so that constants are in the bodies of ops.

A convolution alone would keep its transposes, so a program with a single convolution is not rewritten.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from iree.compiler.dialects import transform

from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.dag_site import Path
from mlir_sched.program.rewrites.layout.channel_dims import Order
from mlir_sched.program.rewrites.layout.choice import choose
from mlir_sched.program.rewrites.layout.constant_ranges import ConstantRanges
from mlir_sched.program.rewrites.layout.fused_elementwise import FusedElementwise
from mlir_sched.program.rewrites.layout.ordered_reads import OrderedReads
from mlir_sched.program.rewrites.layout.placed_rewrite import PlacedRewrite, PlacedSite
from mlir_sched.program.rewrites.layout.reading import read
from mlir_sched.program.rewrites.layout.rules import RULES
from mlir_sched.program.rewrites.layout.rules.moves import begun_by
from mlir_sched.program.rewrites.layout.rules.rule import NAME, Rule
from mlir_sched.program.rewrites.linalg_ops import CONCAT, transposed
from mlir_sched.program.rewrites.replacement import operand_of, ops_named, result_of
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram

MIN_CONVOLUTIONS = 2
"""Convolutions of a program below which no transposes cancel."""
CANCELLATION = ("canonicalize", "cse")
"""MLIR's passes that compose transposes, and make each once."""


@dataclass(frozen=True)
class LayoutSite(PlacedSite):
    """An op that is computed channels last.

    Attributes:
        op: The op.
        rule: Its rule.
        orders: How the dims of its values lie in memory; as in the model for those that are not listed.
        first: For a join, another join in front of it whose operands it begins with; None where there is none.
    """

    op: Any
    rule: Rule
    orders: Mapping[Any, Order]
    first: Any | None = None

    @property
    def targets(self) -> tuple[Any, ...]:
        """The op, and the join of its first operands."""
        return (self.op,) if self.first is None else (self.op, self.first)

    @property
    def compared(self) -> Mapping[Path, Any]:
        """The ops that the rule names."""
        return self.rule.compared(self.op)

    @cached_property
    def inputs(self) -> list[Any]:
        """The values that the result is computed from."""
        inputs = self.rule.inputs(self.op)
        return inputs if self.first is None else [self.first.result, *inputs[len(self.first.operands) :]]

    @cached_property
    def form(self) -> tuple[Hashable, ...]:
        """What is compared of the op, and how many inputs it has beside the join of its first operands."""
        return *super().form, self.first is not None and len(self.inputs)

    @cached_property
    def built(self) -> tuple[Hashable, ...]:
        """How dims are linked, and how they lie in memory."""
        return *map(tuple, self.rule.axes(self.op)), *map(self.order, (*self.inputs, self.result))

    @property
    def any_size(self) -> bool:
        """Whether the replacement is right for other sizes, too."""
        return self.rule.any_size(self.op)

    @property
    def moves(self) -> bool:
        """Whether any of its values lies in memory as it does not in the model."""
        return any(list(self.order(value)) != sorted(self.order(value)) for value in (*self.inputs, self.result))

    def order(self, value: Any) -> Order:
        """Return how the dims of a value lie in memory."""
        return self.orders.get(value, tuple(range(value.type.rank)))


@dataclass(frozen=True)
class ChannelsLast(PlacedRewrite[LayoutSite]):
    """Computes the convolutions and poolings of a network, and what is between them, channels last."""

    name = NAME

    def requires(self, program: WalkedProgram) -> tuple[ProgramRewrite, ...]:
        """Return the rewrites of ops that are written another way."""
        del program
        return OrderedReads(), ConstantRanges(), FusedElementwise()

    def sites(self, program: WalkedProgram) -> list[LayoutSite]:
        """Return the ops that are computed channels last; none where the program has few convolutions to convert.

        Where every layer reads what all layers before it made, joins begin with the operands of other joins: these are
        read in place of their operands.
        """
        if sum(map(_is_convertible, program.ops)) < MIN_CONVOLUTIONS:
            return []
        chosen = choose(read(program))
        joins = [op for op in chosen if op.name == CONCAT]
        first = {op: begun_by(op, joins[:number]) for number, op in enumerate(joins)}
        orders = {op: chosen[op] | chosen.get(first.get(op), {}) for op in chosen}
        sites = [LayoutSite(op, RULES[op.name], orders[op], first.get(op)) for op in chosen]
        return [site for site in sites if site.moves]

    def inputs(self, op: Any, site: LayoutSite, *others: Any) -> list[Any]:
        """Emit handles on the inputs."""
        if site.first is None:
            return site.rule.handles(op, site.op)
        (first,) = others
        return [result_of(first), operand_of(op, *range(1 - len(site.inputs), 0))]

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


def _is_convertible(op: Any) -> bool:
    """Say whether an op is a convolution with channels first, which is not grouped, of static sizes."""
    return ("conv_1d_ncw" in op.name or "conv_2d_nchw" in op.name) and all(map(is_static_f32, op.operands))
