"""Distribution of a dispatch over workgroups, which IREE's task system runs on cores."""

from __future__ import annotations

from typing import ClassVar

from mlir_sched.payload import OpKind
from mlir_sched.transform_scripts.common.extents import (
    innermost_output_loop,
    sizes_for,
    vector_elements,
    vector_multiple,
)
from mlir_sched.transform_scripts.module import DistributionModule
from mlir_sched.transform_scripts.schedule import Schedule, product

MAX_WORKGROUPS_PER_CORE = 2048
"""Above this many workgroups per core their start-up (about 0.1 us each in IREE's task system) shows."""

REUSE_POWER = 0.5
"""Power of a workgroup tile's sizes in its chance, where an op reads its inputs many times: large tiles read less."""

UNEVEN_POWER = 1.0
"""The same along the contiguous loop of a result that no vector divides: its small divisors are less than a vector.

Of 41 channels of a convolution half of the draws were 1 channel wide, and the best of 10 took 14 times the peak's time.
"""


class ParallelDistribution(DistributionModule):
    """Tiles the root into an ``scf.forall`` over workgroups and computes every other op inside.

    Draws one size per parallel loop of the root; the sizes divide the extents, and contractions favour large ones.
    """

    name: ClassVar[str] = "parallel_distribution"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def distribute(self, s: Schedule, loops: tuple[int, ...]) -> None:
        """Distribute the root over workgroups along the given loops and fuse the rest of the dispatch into them."""
        root = s.ops[s.dispatch.root.index]
        innermost, lanes = innermost_output_loop(root.op), vector_elements(root.op, s.target)
        contracts = any(op.kind is OpKind.CONTRACTION for op in s.dispatch.ops)
        reuse = (REUSE_POWER,) if contracts else ()
        sizes: dict[int, int] = {}
        for loop in loops:
            extent = root.op.extents[loop]
            if extent > 1:
                multiple = vector_multiple(extent, lanes) if loop == innermost else 1
                uneven = loop == innermost and multiple < lanes < extent
                powers = (UNEVEN_POWER,) if uneven else reuse
                (sizes[loop],) = s.sample_perfect_tile(
                    f"workgroup_{loop}", extent, 1, multiple_of=multiple, size_powers=powers
                )
        if not sizes:  # nothing to distribute: one workgroup, which the forall still has to name
            sizes = {loops[0]: 1} if loops else {}
        if not sizes:
            return
        workgroups = product([root.op.extents[loop] // size for loop, size in sizes.items()])
        limit = MAX_WORKGROUPS_PER_CORE * s.target.cores
        s.require(workgroups <= limit, f"{workgroups} workgroups are more than {limit}")
        root, forall = s.distribute(root, sizes_for(root.op, sizes), workgroup_mapping(len(sizes)))
        s.fuse_all_into(root, forall)


def workgroup_mapping(count: int) -> list[str]:
    """Return the mapping attributes of ``count`` distributed loops, outermost first.

    Source: IREE's WorkgroupMappingAttr; dimensions past the third are linearised into z (``z:1``, ``z:2``, ...).
    """
    names = ["x", "y", "z", *(f"z:{extra}" for extra in range(1, max(1, count - 2)))]
    return [f"#iree_codegen.workgroup_mapping<{name}>" for name in reversed(names[:count])]
