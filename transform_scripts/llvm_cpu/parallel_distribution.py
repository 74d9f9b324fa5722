"""Distribution of a dispatch over workgroups, which IREE's task system runs on cores."""

import math
from typing import ClassVar

from mlir_sched.payload import OpKind
from mlir_sched.transform_scripts.common import workgroup_mapping
from mlir_sched.transform_scripts.extents import vector_multiple
from mlir_sched.transform_scripts.module import DistributionModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Loop, Loops, contiguous_loop

MAX_WORKGROUPS_PER_CORE = 2048
"""Above this many workgroups per core, the workgroups' start-up (about 0.1 us each in IREE's task system) shows."""

REUSE_POWER = 0.5
"""Power of a workgroup tile's sizes in its chance, for contractions, which reuse inputs: large tiles read less."""

UNEVEN_POWER = 1.0
"""The same along a result's contiguous loop that whole vectors do not divide: small divisors are less than a vector.

With 41 channels of a convolution, half of the uniform draws were 1 channel wide, and the best of 10 candidates took 14
times as long as at peak throughput.
"""


class ParallelDistribution(DistributionModule):
    """A module that tiles the root into an ``scf.forall`` over workgroups and computes every other op inside.

    Draws one size per parallel loop of the root; the sizes divide the extents, and contractions favour large sizes.
    """

    name: ClassVar[str] = "parallel_distribution"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def distribute(self, s: Schedule, loops: Loops) -> None:
        """Distribute the root over workgroups along the given loops and fuse the rest of the dispatch into them."""
        root = s.dispatch.root
        contiguous, lanes = contiguous_loop(root, loops), s.lanes(root)
        contracts = any(op.kind is OpKind.CONTRACTION for op in s.dispatch.ops)
        reuse = (REUSE_POWER,) if contracts else ()
        sizes: dict[Loop, int] = {}
        for loop in loops:
            if loop.extent > 1:
                multiple = vector_multiple(loop.extent, lanes) if loop is contiguous else 1
                powers = (UNEVEN_POWER,) if loop is contiguous and multiple < lanes < loop.extent else reuse
                (sizes[loop],) = s.sample_tiles(f"workgroup_{loop.name}", loop, 1, unit=multiple, powers=powers)
        if not sizes:  # nothing to distribute: one workgroup, which the forall still has to name
            sizes = {loops[0]: 1} if loops else {}
        if not sizes:
            return
        workgroups = math.prod(loop.extent // size for loop, size in sizes.items())
        limit = MAX_WORKGROUPS_PER_CORE * s.target.cores
        s.require(workgroups <= limit, f"{workgroups} workgroups are more than {limit}")
        s.fuse_rest(root, s.distribute(root, sizes, workgroup_mapping(len(sizes))))
