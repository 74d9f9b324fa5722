"""Padded tensors that are reshaped before they are read: the tensor is reshaped first, then padded.

A grouped convolution splits the channels of its padded image into groups, and IREE 3.13 makes a padded copy for it:
IREE fuses padding into the convolution only when the convolution reads the ``tensor.pad`` directly. Reshaping the
tensor before it is padded is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler.dialects import transform

from mlir_sched.compiler.flags import FUSED_PADDING
from mlir_sched.compiler.operations import producer
from mlir_sched.payload import PAD
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, EXPAND, collapse, expand, groups_of
from mlir_sched.program.rewrites.padding.tensor_pad import only_pad, padded, pads_with_zeros, sides_of
from mlir_sched.program.rewrites.replacement import attributes_of, match_dag, match_type, operand_of, producer_of
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite, told_apart
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class ReshapeSite:
    """A padded tensor of a program that is read through one or more reshapes, which leave the padded dims as they are.

    Attributes:
        pad: The ``tensor.pad``.
        reshapes: The reshapes in order; the first one reads the pad.
        shapes: Per reshape, the shape of its result without padding.
        low, high: Padding in front of and behind every dim of the last result.
    """

    pad: Any
    reshapes: tuple[Any, ...]
    shapes: tuple[tuple[int, ...], ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def inputs(self) -> list[Any]:
        """The tensor without padding."""
        return [self.pad.operands[0]]

    @property
    def result(self) -> Any:
        """The reshaped, padded tensor."""
        return self.reshapes[-1].result

    @property
    def matched(self) -> tuple[Any, ...]:
        """What a matcher compares: not how much of the padding lies on which side."""
        reshapes = ((op.name, attributes_of(op), op.result.type) for op in self.reshapes)
        return *reshapes, self.pad.result.type, self.pad.operands[0].type

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for sites that the same replacement is right for."""
        return *self.matched, attributes_of(self.pad)


@dataclass(frozen=True)
class ReshapedPadding(SiteRewrite[ReshapeSite]):
    """Pads after the reshapes instead of before them."""

    name = "reshaped_padding"
    flags = (FUSED_PADDING,)

    def sites(self, program: WalkedProgram) -> list[ReshapeSite]:
        """Return the padded tensors that linalg ops read reshaped, except those that no matcher can tell apart."""
        found = [site for op in program.ops if (site := _site(op)) is not None]
        return told_apart(found, lambda site: site.matched)

    def match(self, root: Any, site: ReshapeSite) -> None:
        """Emit the comparison of the reshapes, and of the padded tensor's shape."""
        transform.MatchOperationNameOp(root, [site.reshapes[-1].name])
        match_dag(site.reshapes[-1], [site.pad.result], root)
        pad = _pad_of(root, site)
        transform.MatchOperationNameOp(pad, [PAD])
        match_type(operand_of(pad, 0), site.pad.operands[0].type)

    def inputs(self, op: Any, site: ReshapeSite) -> list[Any]:
        """Emit a handle on the tensor; fail unless it is padded as in the site."""
        return [operand_of(only_pad(_pad_of(op, site), site.pad), 0)]

    def compute(self, site: ReshapeSite, *inputs: Any) -> Any:
        """Return the tensor reshaped, then padded."""
        (source,) = inputs
        for reshape, shape in zip(site.reshapes, site.shapes, strict=True):
            groups = groups_of(reshape)
            source = collapse(source, groups) if reshape.name == COLLAPSE else expand(source, groups, shape)
        return padded(source, site.low, site.high)


def _pad_of(last: Any, site: ReshapeSite) -> Any:
    """Emit a handle on the pad, from one on the last reshape."""
    for _ in site.reshapes:
        last = producer_of(last, 0)
    return last


def _site(op: Any) -> ReshapeSite | None:
    """Return the site that ends in a reshape whose readers are all linalg ops; None when there is none."""
    if op.name not in (COLLAPSE, EXPAND) or not all(
        use.owner.operation.name.startswith("linalg.") for use in op.result.uses
    ):
        return None
    reshapes = [op]
    while (made_by := producer(reshapes[0].operands[0])) is not None and made_by.name in (COLLAPSE, EXPAND):
        reshapes.insert(0, made_by)
    if made_by is None or not pads_with_zeros(made_by):
        return None
    low, high = sides_of(made_by)
    shapes = []
    for reshape in reshapes:
        places = _places(reshape, [any(sides) for sides in zip(low, high, strict=True)])
        if places is None:
            return None
        shape = list(reshape.result.type.shape)
        sides = [[0] * len(shape), [0] * len(shape)]
        for source, place in places.items():
            for side, before in zip(sides, (low, high), strict=True):
                side[place] = before[source]
            shape[place] -= low[source] + high[source]
        low, high = sides
        shapes.append(tuple(shape))
    return ReshapeSite(made_by, tuple(reshapes), tuple(shapes), tuple(low), tuple(high))


def _places(reshape: Any, is_padded: Sequence[bool]) -> dict[int, int] | None:
    """Return where a reshape puts the padded dims of its source; None if it merges or splits a padded dim.

    A dim that is merged with dims of size 1, or split into itself and dims of size 1, counts as unchanged.
    """
    groups, places = groups_of(reshape), {}
    longer = reshape.operands[0] if reshape.name == COLLAPSE else reshape.result
    for number, group in enumerate(groups):
        long = [dim for dim in group if longer.type.shape[dim] != 1]
        sources, targets = (group, [number]) if reshape.name == COLLAPSE else ([number], group)
        moved = [dim for dim in sources if is_padded[dim]]
        if moved and (len(moved) > 1 or len(long) != 1):
            return None
        for dim in moved:
            places[dim] = targets[0] if len(targets) == 1 else long[0]
    return places
