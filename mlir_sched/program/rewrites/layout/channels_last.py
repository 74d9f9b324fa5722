"""Networks of channels-first convolutions, computed channels last.

Vectors over output channels suit convolutions of any size, stride and number of taps, but they need the channels of
image, filter and result innermost. Which values have channels, and which ops are computed with channels last so that
the least is copied between layouts, is decided for the whole program (:mod:`.choice`), by one rule per kind of op
(:mod:`.rules`). Every such op is replaced by its channels-last form between transposes; those of neighbours cancel.

Element-wise ops are fused first, as IREE does later anyhow: there are fewer kinds of ops to replace then.

Some ops are written another way first, because the one that they have has no rule: the mean of all pixels
(:mod:`.global_mean`), enlarged images (:mod:`.gather`), and tables that are read in order (:mod:`.counted_indices`).

A convolution alone would keep its transposes, so a program with a single convolution is not rewritten.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import producer, walk
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.layout.channel_dims import Order, order_of
from mlir_sched.program.rewrites.layout.choice import choose
from mlir_sched.program.rewrites.layout.counted_indices import ConstantRanges, RowsInOrder
from mlir_sched.program.rewrites.layout.fused_elementwise import FusedElementwise
from mlir_sched.program.rewrites.layout.gather import ChannelsLastGather
from mlir_sched.program.rewrites.layout.global_mean import GlobalMean
from mlir_sched.program.rewrites.layout.moves import TRANSPOSE
from mlir_sched.program.rewrites.layout.reading import read, rule_of
from mlir_sched.program.rewrites.layout.rule import Rule, rank
from mlir_sched.program.rewrites.linalg_ops import transposed
from mlir_sched.program.rewrites.replacement import annotate, ops_named, require_number
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite

MIN_CONVOLUTIONS = 2
"""Convolutions of a program below which no transposes cancel."""
NUMBER = "mlir_sched.kind"
"""Attribute of ops that are to be replaced, while they are told apart."""
CANCELLATION = ("canonicalize", "cse")
"""MLIR's passes that compose transposes, and make each once."""


@dataclass(frozen=True)
class LayoutSite:
    """An op that is computed channels last.

    Attributes:
        op: The op.
        rule: Its rule.
        orders: How the dims lie in memory, of its values with channels.
    """

    op: Any
    rule: Rule
    orders: dict[Any, Order]

    @property
    def inputs(self) -> list[Any]:
        """The values that the result is computed from."""
        return self.rule.inputs(self.op)

    @property
    def result(self) -> Any:
        """The op's result."""
        return self.op.result

    @cached_property
    def kind(self) -> tuple[Hashable, ...]:
        """What a script sees of the op; all ops of a kind have the same orders."""
        return (self.rule.key(self.op),)

    @property
    def moves(self) -> bool:
        """Whether any of its values lies in memory as it does not in the model."""
        return any(self.order(value) != tuple(range(rank(value))) for value in (*self.inputs, self.result))

    @property
    def steps(self) -> int:
        """How many ops a matcher compares."""
        return self.rule.steps(self.op)

    @cached_property
    def family(self) -> Hashable:
        """A key that is equal for ops that a matcher may take for one another."""
        return self.rule.family(self.op)

    def covers(self, other: LayoutSite) -> bool:
        """Say whether a matcher of the op may match one of another kind."""
        alike = self.family == other.family and self.kind != other.kind
        return alike and self.rule is other.rule and self.rule.covers(self.op, other.op)

    def order(self, value: Any) -> Order:
        """Return how the dims of a value lie in memory."""
        return self.orders.get(value, tuple(range(rank(value))))


@dataclass(frozen=True)
class ChannelsLast(SiteRewrite[LayoutSite]):
    """Computes the convolutions and poolings of a network, and what is between them, channels last."""

    name = "channels_last"

    def requires(self, program: ir.Module) -> tuple[ProgramRewrite, ...]:
        """Return the rewrites of ops that have no rule as they are."""
        enlarging = ChannelsLastGather()
        images = (ConstantRanges(), enlarging) if enlarging.applies(program) else ()
        return GlobalMean(), RowsInOrder(), *images, FusedElementwise()

    def applies(self, program: ir.Module) -> bool:
        """Say whether the program has several convolutions to convert."""
        convolutions = [op for op in walk(program.operation) if _is_convertible(op)]
        return len(convolutions) >= MIN_CONVOLUTIONS

    def sites(self, program: ir.Module) -> list[LayoutSite]:
        """Return the ops that are computed channels last."""
        found, without = read(program), frozenset[Hashable]()
        ruled = [(op, rule) for op in found.ops if (rule := rule_of(op)) is not None]
        while True:
            choice = choose(found.program, without)
            known = [(value, number) for value, number in found.numbers.items() if number in choice.channels]
            orders = {value: order_of(rank(value), choice.channels[number]) for value, number in known}
            sites = [LayoutSite(op, rule, orders) for op, rule in ruled]
            chosen = [site for site in sites if site.kind[0] in choice.last and site.moves]
            if not (mixed := _mixed(chosen, sites)):
                return chosen
            without |= mixed

    def match(self, root: Any, site: LayoutSite) -> None:
        """Emit the comparison that the rule makes."""
        site.rule.match(root, site.op)

    def find(self, module: Any, site: LayoutSite, matcher: str) -> Any:
        """Emit a handle on the ops of a kind."""
        return site.rule.find(super().find(module, site, matcher), site.op)

    def inputs(self, op: Any, site: LayoutSite) -> list[Any]:
        """Emit handles on the inputs."""
        return site.rule.handles(op, site.op)

    def compute(self, site: LayoutSite, *inputs: Any) -> Any:
        """Return the op's result, computed channels last and transposed back."""
        given = [transposed(new, site.order(old)) for old, new in zip(site.inputs, inputs, strict=True)]
        order = site.order(site.result)
        return transposed(site.rule.build(site.op, given, site.order), [order.index(dim) for dim in range(len(order))])

    def mark(self, site: LayoutSite, result: Any) -> None:
        """Mark the op of a replacement that carries the mark, in front of the last transpose, if one does."""
        made = producer(result)
        marked = site.rule.marked(site.op, made.operands[0] if made is not None and made.name == TRANSPOSE else result)
        if marked is not None:
            self.prove(marked)

    def emit(self, module: Any, sites: Sequence[Sequence[LayoutSite]], program: ir.Module) -> Any:
        """Emit the search for all ops, their replacement, and the passes that cancel transposes.

        Replacements come last: the channels-last form of one op may be the channels-first form of another.
        """
        del program
        found = self._told_apart(module, sites)
        for number, (handle, (site, *others)) in enumerate(zip(found, sites, strict=True)):
            require_number(handle, 1 + len(others))
            self.replace_all(handle, number, site)
        module = self.cleaned(module)
        for name in CANCELLATION:
            transform.ApplyRegisteredPassOp(transform.AnyOpType.get(), ops_named(module, "util.func"), name)
        return module

    def _told_apart(self, module: Any, sites: Sequence[Sequence[LayoutSite]]) -> list[Any]:
        """Emit handles on the ops of every kind.

        A matcher may match ops of another kind that has more to compare. Where it does, all ops that are matched get
        the number of their kind as an attribute, those with the most to compare last.
        """
        firsts = [site for site, *_ in sites]
        found = [self.find(module, site, f"match_{self.symbol}_{number}") for number, site in enumerate(firsts)]
        pairs = [pair for pair in permutations(range(len(firsts)), 2) if firsts[pair[0]].covers(firsts[pair[1]])]
        mixed = sorted({number for pair in pairs for number in pair}, key=lambda number: firsts[number].steps)
        for number in mixed:
            annotate(found[number], NUMBER, str(number))
        for number in mixed:
            found[number] = ops_named(module, firsts[number].op.name, {NUMBER: ir.StringAttr.get(str(number))})
        return found


def _mixed(chosen: Sequence[LayoutSite], sites: Sequence[LayoutSite]) -> frozenset[Hashable]:
    """Return the keys of chosen ops whose matchers may match ops that are not chosen."""
    last = {site.kind: site for site in chosen}
    others = {site.kind: site for site in sites if site.kind not in last}
    return frozenset(kind[0] for kind, site in last.items() for other in others.values() if site.covers(other))


def _is_convertible(op: Any) -> bool:
    """Say whether an op is a convolution with channels first, which is not grouped, of static sizes."""
    return ("conv_1d_ncw" in op.name or "conv_2d_nchw" in op.name) and all(map(is_static_f32, op.operands))
