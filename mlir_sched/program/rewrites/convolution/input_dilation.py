"""Transposed convolutions of a program: convolutions over an image that is dilated with zeros between its pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import constant_of, producer
from mlir_sched.program.rewrites.convolution.axis import Axis
from mlir_sched.program.rewrites.convolution_ops import CHANNELS_LAST, dilations_of, is_static_f32, strides_of
from mlir_sched.program.rewrites.linalg_ops import region_of
from mlir_sched.program.rewrites.replacement import attributes_of
from mlir_sched.program.rewrites.site_rewrite import told_apart
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class TransposedSite:
    """One transposed convolution of a program.

    Attributes:
        convolution: The convolution; its operands are the image with zeros, the filter, and the init.
        insertion: The ``tensor.insert_slice`` of the image into zeros.
        mirroring: The op that mirrors the stored filter; None when the filter is used as stored.
        axes: The spatial dimensions.
    """

    convolution: Any
    insertion: Any
    mirroring: Any
    axes: tuple[Axis, ...]

    @property
    def image(self) -> Any:
        """The image without inserted zeros."""
        return self.insertion.operands[0]

    @property
    def filter(self) -> Any:
        """The filter as stored."""
        return self.convolution.operands[1] if self.mirroring is None else extraction(self.mirroring).operands[0]

    @property
    def init(self) -> Any:
        """The init, which the convolution adds to."""
        return self.convolution.operands[2]

    @property
    def inputs(self) -> list[Any]:
        """The image without inserted zeros, the filter as stored, and the init."""
        return [self.image, self.filter, self.init]

    @property
    def result(self) -> Any:
        """The convolution's result."""
        return self.convolution.result

    @property
    def unmirrored(self) -> tuple[Any, ...]:
        """What a matcher compares of a site: everything but how its filter is mirrored."""
        types = (operand.type for operand in (*self.convolution.operands, self.image))
        return self.convolution.name, *types, attributes_of(self.convolution), attributes_of(self.insertion)

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for sites that the same replacement is right for."""
        return *self.unmirrored, self.mirroring is None, self.axes


def find_sites(program: WalkedProgram) -> list[TransposedSite]:
    """Return the transposed convolutions of a program, in program order, except those that no matcher can tell apart.

    A matcher sees that a filter is made by an op without inputs, and the replacement checks which op. Where two such
    ops of one shape differ, neither of their convolutions is returned.
    """
    sites = [site for op in program.ops if (site := _site(op)) is not None]
    return told_apart(sites, lambda site: site.unmirrored)


def extraction(mirroring: Any) -> Any:
    """Return the only ``tensor.extract`` in the body of an op; None when there is not exactly one."""
    found = [op.operation for op in mirroring.regions[0].blocks[0] if op.operation.name == "tensor.extract"]
    return found[0] if len(found) == 1 else None


def _site(op: Any) -> TransposedSite | None:
    if op.name not in CHANNELS_LAST or not all(is_static_f32(operand) for operand in op.operands):
        return None
    rank = CHANNELS_LAST.index(op.name) + 1
    insertion = producer(op.operands[0])
    if insertion is None or _is_spread(op, rank) or not _inserts_into_zeros(insertion):
        return None
    offsets, sizes, strides = region_of(insertion)
    around = (0, rank + 1)
    image = insertion.operands[0].type
    if sizes != list(image.shape) or any(offsets[d] or sizes[d] != op.operands[0].type.shape[d] for d in around):
        return None
    if max(strides[1:-1]) == 1:
        return None
    mirroring, mirrored = _mirroring(op.operands[1], rank)
    axes = [
        Axis(
            pixels=image.shape[d + 1],
            taps=(taps := op.operands[1].type.shape[d]),
            results=op.operands[2].type.shape[d + 1],
            stride=strides[d + 1],
            crop=taps - 1 - offsets[d + 1],
            mirrored=d not in mirrored,
        )
        for d in range(rank)
    ]
    return TransposedSite(op, insertion, mirroring, tuple(axes))


def _is_spread(convolution: Any, rank: int) -> bool:
    """Say whether the convolution has strides or dilations of its own."""
    return max(*strides_of(convolution, rank), *dilations_of(convolution, rank)) > 1


def _inserts_into_zeros(insertion: Any) -> bool:
    if insertion.name != "tensor.insert_slice" or len(insertion.operands) != 2:
        return False
    if not all(is_static_f32(operand) for operand in insertion.operands):
        return False
    fill = producer(insertion.operands[1])
    if fill is None or fill.name != "linalg.fill":
        return False
    zero, empty = constant_of(fill.operands[0]), producer(fill.operands[1])
    if zero is None or empty is None or empty.name != "tensor.empty":
        return False
    return bool(ir.FloatAttr(zero).value == 0.0)


def _mirroring(filter_: Any, rank: int) -> tuple[Any, frozenset[int]]:
    """Return the op that mirrors a filter and the dims that it mirrors; (None, no dims) when there is no such op."""
    op = producer(filter_)
    none = None, frozenset[int]()
    if op is None or op.name != "linalg.generic" or len(op.operands) != 1 or len(op.regions[0].blocks) != 1:
        return none
    extract, end = extraction(op), list(op.regions[0].blocks[0])[-1].operation
    if extract is None or producer(end.operands[0]) != extract or extract.operands[0].type != filter_.type:
        return none
    if op.attributes["indexing_maps"][0] != ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank + 2)):
        return none
    mirrored = set()
    for dim, position in enumerate(list(extract.operands)[1:]):
        index = producer(position)
        if index is not None and index.name == "arith.subi" and dim < rank:
            last = constant_of(index.operands[0])
            if last is None or int(ir.IntegerAttr(last)) != filter_.type.shape[dim] - 1:
                return none
            index = producer(index.operands[1])
            mirrored.add(dim)
        if index is None or index.name != "linalg.index" or int(ir.IntegerAttr(index.attributes["dim"])) != dim:
            return none
    return op, frozenset(mirrored)
