"""Products with constant weights: the weights are packed, once, in the order in which a script reads them.

Convolutions with channels last and matrix products multiply rows of a matrix by columns of the weights. A script
computes tiles of some rows by one block of columns. The rewrite stores each block apart: for every element of the
reduction one after the other, the block's columns lie side by side. A tile then reads its weights as one contiguous
stream, while weights in the model's order are copied first, or are read with a stride of a power of two, which L1
caches and prefetchers serve badly. Most weights of a model come from memory in every call, so the order matters most in
the last layers of a network, which have large weights and few rows.

Without scripts IREE 3.13 compiles packed products 3 to 30 times slower than others: their time before tuning says
nothing.
"""

from dataclasses import dataclass
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.constant_values import with_constant_weights
from mlir_sched.program.rewrites.convolution_ops import CHANNELS_LAST
from mlir_sched.program.rewrites.linalg_ops import EXPAND, collapse, dims_map, expand, maps_of, numbers_of
from mlir_sched.program.rewrites.pass_rewrite import PassRewrite
from mlir_sched.program.rewrites.products.joined_images import JoinedImages
from mlir_sched.program.rewrites.products.packed_product import MATMULS, ProductSite, packed, pays, product
from mlir_sched.program.rewrites.products.patches import PatchProducts
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.site_rewrite import OpRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class PackedWeights(OpRewrite[ProductSite]):
    """Packs constant weights of convolutions and matrix products in blocks of columns.

    Before, products of a batch of matrices with the same weights become one product, convolutions of patches
    that do not overlap become products (:mod:`.patches`), and images that are joined for a convolution are put one
    behind the other (:mod:`.joined_images`).
    """

    name = "packed_weights"
    needs_scripts = True

    def requires(self, program: WalkedProgram) -> tuple[ProgramRewrite, ...]:
        """Return the rewrites that make products of other ops."""
        del program
        return UnbatchedProducts(), PatchProducts(), JoinedImages()

    def sites(self, program: WalkedProgram) -> list[ProductSite]:
        """Return the products with constant weights for which another order pays."""
        found = [ProductSite(op) for op in program.ops if op.name in (*CHANNELS_LAST, *MATMULS)]
        return with_constant_weights([site for site in found if pays(site)], program)

    def compute(self, site: ProductSite, *inputs: Any) -> Any:
        """Return the product with packed weights."""
        rows, weights, init = inputs
        if not (sizes := _split_rows(site.op)):
            return product(site, rows, packed(site, weights), init)
        merged = [[*range(len(sizes))], [len(sizes)]]
        rows, init = (expand(value, merged, [*sizes, value.type.shape[-1]]) for value in (rows, init))
        return collapse(product(site, rows, packed(site, weights), init), merged)


def _split_rows(op: Any) -> list[int]:
    """Return the sizes into which the only reader of a matrix product splits its rows; empty where nothing does.

    A product that keeps these rows apart is one dispatch with the reader: IREE does not move the reshape of a block's
    columns past that of the rows.
    """
    readers = [use.owner for use in op.result.uses]
    if op.name != "linalg.matmul" or len(readers) != 1 or readers[0].name != EXPAND:
        return []
    *sizes, columns = readers[0].result.type.shape
    return sizes if len(sizes) > 1 and columns == op.result.type.shape[-1] else []


@dataclass(frozen=True)
class UnbatchedProducts(PassRewrite):
    """Makes products of a batch of matrices with the same weights one product of all their rows, by IREE's own pass.

    PyTorch's exporter writes a linear layer on more than two dimensions as a broadcast of its weights and a batched
    product. IREE makes one product of both (ConvertBatchMatmulToMatmul.cpp), but after the rewrites: a rewrite sees no
    product with constant weights, and one that moves transposes keeps the broadcast, which then runs in every call.
    """

    name = "unbatched_products"
    iree_pass = "iree-global-opt-convert-batch-matmul-to-matmul"

    def finds(self, program: WalkedProgram) -> bool:
        """Say whether a batch of several matrices is multiplied by the same weights."""
        products = (op for op in program.ops if op.name == "linalg.batch_matmul")
        return any(op.operands[1].type.shape[0] > 1 and _is_broadcast(op.operands[1]) for op in products)


def _is_broadcast(weights: Any) -> bool:
    """Say whether an op makes equal matrices, one per element of the batch."""
    op = producer(weights)
    if op is not None and op.name == "linalg.broadcast":
        return numbers_of(op, "dimensions") == [0]
    return (
        op is not None and op.name == "linalg.generic" and maps_of(op) == [dims_map(3, (1, 2)), dims_map(3, range(3))]
    )
