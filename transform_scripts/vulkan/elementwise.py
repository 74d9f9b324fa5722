"""Element-wise dispatches on Vulkan devices: a thread computes its whole tile as vectors."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.payload import LinalgOp
from mlir_sched.transform_scripts.common import elementwise as common
from mlir_sched.transform_scripts.common.elementwise import check_instructions
from mlir_sched.transform_scripts.common.extents import vector_elements
from mlir_sched.transform_scripts.schedule import Schedule, product


class Elementwise(common.Elementwise):
    """Vectorizes every op on the tile of a thread."""

    backends: ClassVar[tuple[str, ...]] = ("vulkan-spirv",)

    def schedule(self, s: Schedule, op: LinalgOp) -> None:
        """Vectorize the ops of the dispatch, which threads share out already."""
        check_instructions(s, product(s.ops[op.index].tile) / vector_elements(op, s.target))
        for tiled in s.ops:
            s.vectorize(tiled)
