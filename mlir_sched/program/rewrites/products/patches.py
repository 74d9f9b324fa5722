"""Convolutions of patches that do not overlap, channels first, as products: the first layer of vision transformers.

Where windows are as large as the strides, every pixel is read for one result only. The pixels of each patch are put
side by side, a copy of the image, and the filters are the columns of a matrix, whose weights can be packed like any
others. As a convolution, vectors over the filters multiply patches of a few channels whose weights are far apart.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

from iree.compiler.dialects import linalg

from mlir_sched.program.rewrites.convolution_ops import PLANE_FIRST, dilations_of, is_static_f32, strides_of
from mlir_sched.program.rewrites.linalg_ops import added, barrier, collapse, expand, transposed, zeros
from mlir_sched.program.rewrites.products.packed_product import BLOCKS
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class PatchProducts(OpRewrite[OpSite]):
    """Computes convolutions of patches as products."""

    name = "patch_products"

    def sites(self, program: WalkedProgram) -> list[OpSite]:
        """Return the convolutions, channels first, whose windows tile one image, with filters enough for a block."""
        return [OpSite(op) for op in program.ops if op.name == PLANE_FIRST and _has_patches(op)]

    def compute(self, site: OpSite, *inputs: Any) -> Any:
        """Return the convolution."""
        del site
        image, taps, init = inputs
        _, filters, rows, columns = init.type.shape
        _, channels, down, right = taps.type.shape
        split = expand(image, [[0], [1], [2, 3], [4, 5]], [1, channels, rows, down, columns, right])
        patches = barrier(collapse(transposed(split, (0, 2, 4, 1, 3, 5)), [[0, 1, 2], [3, 4, 5]]))
        weights = transposed(collapse(taps, [[0], [1, 2, 3]]), (1, 0))
        sums = linalg.matmul(patches, weights, outs=[zeros([rows * columns, filters], init.type.element_type)])
        return added(init, expand(sums, [[0, 1, 2], [3]], [1, rows, columns, filters]), (0, 2, 3, 1))


def _has_patches(op: Any) -> bool:
    """Say whether a convolution of one image reads each of its pixels for one result."""
    if not all(map(is_static_f32, op.operands)):
        return False
    image, taps, result = (operand.type.shape for operand in op.operands)
    window = list(taps[2:])
    tiles = [pixels * size for pixels, size in zip(result[2:], window, strict=True)] == list(image[2:])
    single = image[0] == 1 and prod(window) > 1 and dilations_of(op, 2) == [1, 1]
    return single and tiles and strides_of(op, 2) == window and result[1] >= BLOCKS[-1]
