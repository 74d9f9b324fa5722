"""Products of a batch of matrices with the same weights, as one product of all their rows.

PyTorch's exporter writes a linear layer on more than two dimensions as a broadcast of its weights and a batched
product. IREE makes one product of both (ConvertBatchMatmulToMatmul.cpp), but after the rewrites: a rewrite sees no
product with constant weights, and one that moves transposes keeps the broadcast, which then runs in every call
(ConvNeXt-tiny: half of the time).
"""

from dataclasses import dataclass
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.linalg_ops import dims_map, maps_of, numbers_of
from mlir_sched.program.rewrites.pass_rewrite import PassRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram


@dataclass(frozen=True)
class UnbatchedProducts(PassRewrite):
    """Runs IREE's pass before another rewrite, which has to come after it."""

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
