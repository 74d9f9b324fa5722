"""Element-wise dispatches on Vulkan devices: a thread computes its whole tile as vectors."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.transform_scripts.common.elementwise import ElementwiseModule, check_instructions
from mlir_sched.transform_scripts.schedule import Schedule, product
from mlir_sched.transform_scripts.structures import Elementwise as Found


class Elementwise(ElementwiseModule):
    """A module that vectorizes every op on the tile of a thread."""

    backends: ClassVar[tuple[str, ...]] = ("vulkan-spirv",)

    def schedule(self, s: Schedule, found: Found) -> None:
        """Vectorize the ops of the dispatch, which are already distributed over threads."""
        check_instructions(s, product(s.tile_of(found.root)) / s.lanes(found.root))
        s.vectorize(*found.ops)
