"""What modules have in common whose workgroups copy operands into shared memory: loops, limits, copies."""

from collections.abc import Mapping, Sequence

from mlir_sched.payload import LinalgOp
from mlir_sched.transform_scripts.gpu.thread_distribution import DIMENSIONS, distributed_loops
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction, Loop, Loops
from mlir_sched.transform_scripts.tracking.nest import SharedTile, Sharing, shared_tiles

COPY_BYTES = 16
"""Bytes that a thread copies at once. Source: IREE ``GPUDistributeSharedMemoryCopy.cpp`` (``copyVectorNumBits``)."""
MAX_COPIES = 64
"""Most copies of a thread in one step of the reduction, which IREE unrolls; more only make code longer."""


def shared_loops(mm: Contraction) -> Loops:
    """Return the loops that are distributed over workgroups and threads, outermost first, as the root walks them.

    There are none where nothing is shared (a product with a vector), where a contraction has no fill or more loops
    than a grid of workgroups has dimensions, or where an epilogue has other loops: every thread has to compute the
    epilogues of the results that it accumulates. There are none for rows that are no whole vectors, and for
    inputs of single bytes: IREE 3.13 does not make SPIR-V of all vectors of bytes in shared memory.
    """
    walked = (*mm.others, *mm.tiled)
    wide = all(_has_vectors(tile) and tile.element_bytes > 1 for tile in shared_tiles(mm.op, mm.op.extents))
    suits = mm.rows is not None and mm.fill is not None and len(walked) <= len(DIMENSIONS)
    if not (suits and wide) or not all(_walks(op, walked) for op in (mm.op, *mm.epilogues)):
        return ()
    return tuple(sorted(walked, key=lambda loop: loop.position(mm.root)))


def _walks(op: LinalgOp, loops: Loops) -> bool:
    """Say whether an op walks all of these loops, and no other that is longer than 1."""
    positions = sorted(loop.position(op) for loop in loops if loop.is_walked_by(op))
    return len(positions) == len(loops) and positions == [loop.position(op) for loop in distributed_loops(op)]


def mapping(op: LinalgOp, loops: Sequence[Loop], over: str) -> list[str]:
    """Return one mapping attribute per loop, in the order in which an op walks the loops.

    Args:
        loops: The loops, outermost first; the last one is distributed along x.
        over: ``block``, ``thread`` or ``warp``.
    """
    names = dict(zip(reversed(loops), DIMENSIONS, strict=False))
    return [f"#gpu.{over}<{names[loop]}>" for loop in sorted(loops, key=lambda loop: loop.position(op))]


def distribute_over_workgroups(s: Schedule, mm: Contraction, sizes: Mapping[Loop, int]) -> None:
    """Distribute a contraction's root over workgroups, and compute the other ops inside.

    Args:
        sizes: The tile of a workgroup by loop, outermost first.
    """
    if mm.epilogues:  # the fill gets a tensor of its own; else bufferization copies the result of the root into it
        s.raw("transform.iree.eliminate_empty_tensors")
    forall = s.distribute(mm.root, sizes, mapping(mm.root, list(sizes), "block"))
    s.raw("transform.iree.populate_workgroup_count_region_using_num_threads_slice", on=forall)
    s.fuse_rest(mm.root, forall)


def sample_step(
    s: Schedule, mm: Contraction, workgroup: Mapping[Loop, int], threads: int, *, most: int, unit: int = 1
) -> int:
    """Draw the step of the reduction that is shared, from those that the threads of a workgroup copy in equal parts.

    IREE copies tiles that do not spread evenly in loops, element by element.

    Args:
        most: Largest step.
        unit: What steps are multiples of.

    Raises:
        IllegalTraceError: There is no such step, or there is no room in shared memory.
    """
    extent = mm.reduction.extent
    steps = [step for step in range(unit, min(most, extent) + 1, unit) if extent % step == 0]
    tiles = {step: shared_tiles(mm.op, _tile(mm, workgroup, step)) for step in steps}
    even = [step for step in steps if all(_spreads(tile, threads) for tile in tiles[step])]
    s.require(bool(even), f"{threads} threads copy no step of the reduction up to {most} in equal parts")
    fitting = [step for step in even if fits(s, Sharing(tiles[step], 1))]
    s.require(bool(fitting), f"a reduction step of {even[0]} does not fit shared memory")
    return s.sample_number("reduction_step", fitting, weights=[float(step) for step in fitting])


def fits(s: Schedule, sharing: Sharing, buffers: int = 1, padding: int = 0) -> bool:
    """Say whether buffers of all shared tiles, whose rows have further bytes, fit the memory of a workgroup."""
    assert s.target.gpu is not None
    return sharing.bytes(buffers, padding) <= s.target.gpu.shared_memory_bytes


def _tile(mm: Contraction, workgroup: Mapping[Loop, int], step: int) -> list[int]:
    tile = [1] * len(mm.op.extents)
    for loop, size in workgroup.items():
        tile[loop.position(mm.op)] = size
    tile[mm.reduction.position(mm.op)] = step
    return tile


def _has_vectors(tile: SharedTile) -> bool:
    return tile.shape[-1] * tile.element_bytes % COPY_BYTES == 0


def _spreads(tile: SharedTile, threads: int) -> bool:
    """Say whether threads divide a tile into vectors, from its innermost dimension on, each the same number of them.

    Source: IREE ``getTileToDistributableSize``, which takes as many threads along a dimension as there are.
    """
    counts = [tile.shape[-1] * tile.element_bytes // COPY_BYTES, *reversed(tile.shape[:-1])]
    if not _has_vectors(tile) or tile.bytes() > COPY_BYTES * threads * MAX_COPIES:
        return False
    left = threads
    for count in counts:
        along = min(count, left)
        if count % along or left % along:
            return False
        left //= along
    return left == 1
