"""Biases of convolutions, added to the result: PyTorch's exporter starts the sums with the broadcast bias.

Scripts compute a convolution from zeros, with what follows in the same tile. A broadcast bias is a dispatch of its own,
or stands in the convolution's, which then has no script.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor, transform

from mlir_sched.compiler.operations import producer, walk
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.linalg_ops import copied, dims_map, generic, zeros
from mlir_sched.program.rewrites.replacement import attributes_of, match_dag, operand_of, producer_of
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite

BROADCAST = "linalg.broadcast"


@dataclass(frozen=True)
class BiasSite(OpSite):
    """A convolution that starts with a broadcast; its operands are image, filter and broadcast."""

    @property
    def broadcast(self) -> Any:
        """The op that makes the start from the bias."""
        return producer(self.op.operands[2])

    @property
    def inputs(self) -> list[Any]:
        """Image, filter and bias."""
        return [*list(self.op.operands)[:2], self.broadcast.operands[0]]

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for convolutions that the same matcher finds."""
        return *super().kind, attributes_of(self.broadcast), str(self.broadcast.operands[0].type)


@dataclass(frozen=True)
class AddedBias(OpRewrite[BiasSite]):
    """Starts every convolution with zeros, and adds the bias to its result."""

    name = "added_bias"

    def sites(self, program: ir.Module) -> list[BiasSite]:
        """Return the convolutions on static f32 tensors that start with a broadcast."""
        return [BiasSite(op) for op in walk(program.operation) if _starts_with_a_broadcast(op)]

    def match(self, root: Any, site: BiasSite) -> None:
        """Emit the comparison of the convolution and of its start."""
        transform.MatchOperationNameOp(root, [site.op.name])
        match_dag(site.op, [*site.inputs[:2], *site.broadcast.operands], root)

    def inputs(self, op: Any, site: BiasSite) -> list[Any]:
        """Emit handles on image, filter and bias."""
        del site
        return [operand_of(op, 0), operand_of(op, 1), operand_of(producer_of(op, 2), 0)]

    def compute(self, site: BiasSite, *inputs: Any) -> Any:
        """Return the convolution from zeros, plus the bias."""
        image, taps, bias = inputs
        kind = site.result.type
        sums = copied(site.op, [image, taps, zeros(kind.shape, kind.element_type)]).results[0]
        broadcast = list(ir.DenseI64ArrayAttr(site.broadcast.attributes["dimensions"]))
        maps = [range(kind.rank), [dim for dim in range(kind.rank) if dim not in broadcast], range(kind.rank)]
        empty, kinds = tensor.empty(kind.shape, kind.element_type), ["parallel"] * kind.rank
        places = [dims_map(kind.rank, dims) for dims in maps]
        return generic([sums, bias], empty, places, kinds, lambda x, y, _: arith.addf(x, y))


def _starts_with_a_broadcast(op: Any) -> bool:
    if not op.name.startswith("linalg.") or "conv_" not in op.name or not all(map(is_static_f32, op.operands)):
        return False
    start = producer(op.operands[2])
    return start is not None and start.name == BROADCAST
