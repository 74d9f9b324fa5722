"""Distribution of a dispatch over workgroups and over the threads of each, as GPUs run them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import GpuLimits, Target
from mlir_sched.transform_scripts.common.extents import (
    innermost_output_loop,
    sizes_for,
    vector_elements,
    vector_multiple,
)
from mlir_sched.transform_scripts.module import DistributionModule, Sketch
from mlir_sched.transform_scripts.schedule import Schedule, TiledOp, product

DIMENSIONS = ("x", "y", "z")
MAX_THREAD_TILE = 16
MAX_THREAD_ELEMENTS = 128
"""Result elements of one thread; above it the unrolled code of a contraction takes minutes to compile (lavapipe) or
spills (sm_90)."""


class ThreadDistribution(DistributionModule):
    """Tiles the root into an ``scf.forall`` over workgroups and one over threads, and computes every other op inside.

    Draws the tile of a workgroup and, within it, that of a thread for the two innermost parallel loops of the root; an
    outer one has a workgroup for each of its iterations. The sizes divide the extents.
    """

    name: ClassVar[str] = "thread_distribution"

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Extend sketches that left distribution open, unless more loops than a grid has dimensions are parallel."""
        if target.gpu is None or len(distributed_loops(dispatch.root)) > len(DIMENSIONS):
            return (sketch,)
        return super().extend(sketch, op, dispatch, target)

    def distribute(self, s: Schedule, loops: tuple[int, ...]) -> None:
        """Distribute the root over workgroups and threads and fuse the rest of the dispatch into both."""
        root = s.ops[s.dispatch.root.index]
        walked = [loop for loop in distributed_loops(root.op) if loop in loops]
        workgroup, thread = draw_threads(s, root, walked)
        names = DIMENSIONS[: len(walked)][::-1]
        root, forall = s.distribute(root, sizes_for(root.op, workgroup), [f"#gpu.block<{name}>" for name in names])
        s.emit.op("transform.iree.populate_workgroup_count_region_using_num_threads_slice", forall.handle)
        s.fuse_all_into(root, forall)
        root, forall = s.distribute(
            root, sizes_for(root.op, thread), [f"#gpu.thread<{name}>" for name in names], kind="thread"
        )
        s.fuse_all_into(root, forall)


def distributed_loops(root: LinalgOp) -> list[int]:
    """Return the loops of a dispatch's root that are distributed, outermost first: parallel and longer than 1."""
    return [loop for loop in root.parallel_dims if root.extents[loop] > 1]


def workgroup_size(root: TiledOp) -> tuple[int, int, int]:
    """Return the threads of a workgroup along x, y and z, once the root is distributed."""
    workgroup, thread = root.levels[:2]
    counts = [workgroup.tile[loop] // thread.tile[loop] for loop in reversed(distributed_loops(root.op))]
    x, y, z = (*counts, 1, 1)[: len(DIMENSIONS)]
    return x, y, z


def draw_threads(s: Schedule, op: TiledOp, loops: Sequence[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Draw the tile of a workgroup and of a thread of it, both by loop, and check them against the device's limits.

    Args:
        s: The schedule.
        op: An op that is not tiled yet.
        loops: Its loops to distribute, outermost first, at most three.

    Raises:
        IllegalTraceError: The device does not run such workgroups.
    """
    assert s.target.gpu is not None
    workgroup, thread = _sample_tiles(s, op, loops, s.target.gpu)
    _check_limits(s, op, workgroup, thread, s.target.gpu)
    return workgroup, thread


def _sample_tiles(
    s: Schedule, root: TiledOp, loops: Sequence[int], gpu: GpuLimits
) -> tuple[dict[int, int], dict[int, int]]:
    contiguous, lanes = innermost_output_loop(root.op), vector_elements(root.op, s.target)
    workgroup = dict.fromkeys(loops, 1)
    thread = dict.fromkeys(loops, 1)
    for loop, most in zip(loops[-2:], reversed(gpu.workgroup_size[: len(loops[-2:])]), strict=True):
        extent = root.op.extents[loop]
        workgroup[loop], thread[loop] = s.sample_perfect_tile(
            f"tile_{loop}",
            extent,
            2,
            max_innermost=MAX_THREAD_TILE,
            multiple_of=vector_multiple(extent, lanes) if loop == contiguous else 1,
            max_outermost=MAX_THREAD_TILE * min(most, gpu.workgroup_threads),
        )
    return workgroup, thread


def _check_limits(
    s: Schedule, root: TiledOp, workgroup: dict[int, int], thread: dict[int, int], gpu: GpuLimits
) -> None:
    """Refuse workgroups that the device does not run, or that IREE accepts and drivers may not."""
    innermost_first = list(reversed(list(workgroup)))
    sizes = [workgroup[loop] // thread[loop] for loop in innermost_first]
    counts = [root.op.extents[loop] // workgroup[loop] for loop in innermost_first]
    threads, elements = product(sizes), product(list(thread.values()))
    s.require(elements <= MAX_THREAD_ELEMENTS, f"{elements} results per thread are more than {MAX_THREAD_ELEMENTS}")
    s.require(threads <= gpu.workgroup_threads, f"{threads} threads per workgroup > {gpu.workgroup_threads}")
    whole = threads % gpu.subgroup_size == 0 or threads < gpu.subgroup_size
    s.require(whole, f"{threads} threads per workgroup are no whole subgroups of {gpu.subgroup_size}")
    for name, size, most in zip(DIMENSIONS, sizes, gpu.workgroup_size, strict=False):
        s.require(size <= most, f"{size} threads along {name} > {most}")
    for name, count, most in zip(DIMENSIONS, counts, gpu.workgroup_counts, strict=False):
        s.require(count <= most, f"{count} workgroups along {name} > {most}")
    s.notes["threads"] = threads
