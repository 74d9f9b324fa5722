"""Images that are joined along their channels for a convolution, one behind the other.

With channels last, ``tensor.concat`` copies every image, as the channels of a pixel lie side by side. One behind the
other, along an outermost dim, images lie in the joined tensor as they are, and IREE has them written there at once
(EmplaceAllocations.cpp). The convolution sums over the images and over the channels of each. Images that are padded
after they were joined, as in a UNet, are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import tensor

from mlir_sched.compiler.operations import only_use, producer
from mlir_sched.program.rewrites.constant_values import with_constant_weights
from mlir_sched.program.rewrites.convolution_ops import CHANNELS_LAST
from mlir_sched.program.rewrites.linalg_ops import CONCAT, dim_of, expand
from mlir_sched.program.rewrites.products.packed_product import ProductSite, packed, pays, product
from mlir_sched.program.rewrites.replacement import attributes_of, operand_of, producer_of
from mlir_sched.program.rewrites.site_rewrite import OpRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class JoinedSite(ProductSite):
    """A convolution whose image is joined of others."""

    @property
    def images(self) -> list[Any]:
        """The images that are joined, in order."""
        return list(producer(self.op.operands[0]).operands)

    @property
    def inputs(self) -> list[Any]:
        """Those images, then filter and init."""
        return [*self.images, *list(self.op.operands)[1:]]

    @property
    def kind(self) -> tuple[Any, ...]:
        """A key, equal for convolutions that the same matcher finds."""
        return *super().kind, attributes_of(producer(self.op.operands[0])), *(image.type for image in self.images)


@dataclass(frozen=True)
class JoinedImages(OpRewrite[JoinedSite]):
    """Joins images along an outermost dim, and packs the weights of the convolution that reads them."""

    name = "joined_images"

    def sites(self, program: WalkedProgram) -> list[JoinedSite]:
        """Return the convolutions with weights worth packing that alone read equally large images, joined."""
        convolutions = [op for op in program.ops if op.name in CHANNELS_LAST]
        found = [JoinedSite(op) for op in convolutions if _is_joined(op.operands[0])]
        return with_constant_weights([site for site in found if pays(site)], program)

    def inputs(self, op: Any, site: JoinedSite) -> list[Any]:
        """Emit handles on the images, filter and init."""
        join = producer_of(op, 0)
        return [*(operand_of(join, number) for number in range(len(site.images))), operand_of(op, 1), operand_of(op, 2)]

    def compute(self, site: JoinedSite, *inputs: Any) -> Any:
        """Return the convolution of the images one behind the other."""
        *images, weights, init = inputs
        shape, element = images[0].type.shape, images[0].type.element_type
        rank, number = len(shape), len(images)
        behind = [[0, 1], *([dim] for dim in range(2, rank + 1))]
        parts = [expand(image, behind, [1, *shape]) for image in images]
        joined = tensor.concat(ir.RankedTensorType.get([number, *shape], element), 0, parts)
        blocks = packed(site, weights)
        *outer, channels, block = blocks.type.shape
        split = [*([dim] for dim in range(len(outer))), [len(outer), len(outer) + 1], [len(outer) + 2]]
        by_image = expand(blocks, split, [*outer, number, channels // number, block])
        return product(site, joined, by_image, init, joined=True)


def _is_joined(image: Any) -> bool:
    """Say whether an image is joined of equally large ones, along its channels, for one reader."""
    join = producer(image)
    if join is None or join.name != CONCAT or only_use(image) is None:
        return False
    innermost = dim_of(join) == image.type.rank - 1
    return innermost and len({each.type for each in join.operands}) == 1
