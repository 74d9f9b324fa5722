"""Distribution of a dispatch over workgroups and over the threads of a workgroup, as GPUs run them."""

import math
from collections.abc import Sequence
from typing import ClassVar

from mlir_sched.payload import LinalgOp
from mlir_sched.targets.target import GpuLimits, Target
from mlir_sched.transform_scripts.common import OnThreads
from mlir_sched.transform_scripts.extents import vector_multiple
from mlir_sched.transform_scripts.module import DistributionModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Loop, Loops, contiguous_loop, parallel_loops

DIMENSIONS = ("x", "y", "z")
MAX_THREAD_TILE = 16
MAX_THREAD_ELEMENTS = 128
"""Most result elements of one thread; with more, the unrolled code of a contraction takes minutes to compile
(lavapipe) or spills (sm_90)."""


class ThreadDistribution(OnThreads, DistributionModule):
    """A module that tiles the root into an ``scf.forall`` over workgroups and one over threads, the other ops inside.

    Draws, for the last two loops that it gets, the tile of a workgroup and within it the tile of a thread; each
    iteration of another loop has workgroups of its own. The sizes divide the extents.
    """

    name: ClassVar[str] = "thread_distribution"

    def can_distribute(self, loops: Loops, target: Target) -> bool:
        """Say whether a grid of workgroups has at least as many dimensions as there are loops."""
        del target
        return len(_longer(loops)) <= len(DIMENSIONS)

    def distribute(self, s: Schedule, loops: Loops) -> None:
        """Distribute the root over workgroups and threads and fuse the rest of the dispatch into both."""
        root = s.dispatch.root
        walked = _longer(loops)
        workgroup, thread = draw_threads(s, root, walked)
        dimensions = dict(zip(reversed(walked), DIMENSIONS, strict=False))
        names = [dimensions[loop] for loop in sorted(walked, key=lambda loop: loop.position(root))]
        forall = s.distribute(root, workgroup, [f"#gpu.block<{name}>" for name in names])
        s.raw("transform.iree.populate_workgroup_count_region_using_num_threads_slice", on=forall)
        s.fuse_rest(root, forall)
        s.fuse_rest(root, s.distribute(root, thread, [f"#gpu.thread<{name}>" for name in names], over="thread"))


def distributed_loops(root: LinalgOp) -> Loops:
    """Return the loops of a dispatch's root that are distributed by default: parallel and longer than 1."""
    return _longer(parallel_loops(root))


def _longer(loops: Loops) -> Loops:
    return tuple(loop for loop in loops if loop.extent > 1)


def draw_threads(s: Schedule, op: LinalgOp, loops: Sequence[Loop]) -> tuple[dict[Loop, int], dict[Loop, int]]:
    """Draw the tiles of a workgroup and of a thread, both by loop, and check them against the device's limits.

    The schedule gets the size of the workgroup (:attr:`Schedule.workgroup_size`).

    Args:
        loops: The op's loops to distribute along z, y and x, in this order, at most three.

    Raises:
        IllegalTraceError: The device does not run such workgroups, or a thread has too many results.
    """
    assert s.target.gpu is not None
    workgroup, thread = _sample_tiles(s, op, loops, s.target.gpu)
    _check_limits(s, workgroup, thread, s.target.gpu)
    return workgroup, thread


def _sample_tiles(
    s: Schedule, root: LinalgOp, loops: Sequence[Loop], gpu: GpuLimits
) -> tuple[dict[Loop, int], dict[Loop, int]]:
    contiguous, lanes = contiguous_loop(root, loops), s.lanes(root)
    workgroup = dict.fromkeys(loops, 1)
    thread = dict.fromkeys(loops, 1)
    for loop, most in zip(loops[-2:], reversed(gpu.workgroup_size[: len(loops[-2:])]), strict=True):
        workgroup[loop], thread[loop] = s.sample_tiles(
            f"tile_{loop.name}",
            loop,
            2,
            most=MAX_THREAD_TILE,
            unit=vector_multiple(loop.extent, lanes) if loop is contiguous else 1,
            most_outermost=MAX_THREAD_TILE * min(most, gpu.workgroup_threads),
        )
    return workgroup, thread


def require_counts(s: Schedule, counts: Sequence[int], gpu: GpuLimits) -> None:
    """Refuse more workgroups along x, y and z than a grid has; ``counts`` may end before z."""
    for name, count, most in zip(DIMENSIONS, counts, gpu.workgroup_counts, strict=False):
        s.require(count <= most, f"{count} workgroups along {name} > {most}")


def _check_limits(s: Schedule, workgroup: dict[Loop, int], thread: dict[Loop, int], gpu: GpuLimits) -> None:
    """Refuse workgroups that the device does not run, or that drivers may refuse although IREE accepts them."""
    innermost_first = list(reversed(list(workgroup)))
    sizes = [workgroup[loop] // thread[loop] for loop in innermost_first]
    counts = [loop.extent // workgroup[loop] for loop in innermost_first]
    threads, elements = math.prod(sizes), math.prod(thread.values())
    s.require(elements <= MAX_THREAD_ELEMENTS, f"{elements} results per thread are more than {MAX_THREAD_ELEMENTS}")
    s.require(threads <= gpu.workgroup_threads, f"{threads} threads per workgroup > {gpu.workgroup_threads}")
    whole = threads % gpu.subgroup_size == 0 or threads < gpu.subgroup_size
    s.require(whole, f"{threads} threads per workgroup are no whole subgroups of {gpu.subgroup_size}")
    for name, size, most in zip(DIMENSIONS, sizes, gpu.workgroup_size, strict=False):
        s.require(size <= most, f"{size} threads along {name} > {most}")
    require_counts(s, counts, gpu)
    s.notes["threads"] = threads
    x, y, z = (*sizes, 1, 1)[: len(DIMENSIONS)]
    s.workgroup_size = (x, y, z)
