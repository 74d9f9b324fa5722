"""Distribution of results of any extents over workgroups, whose threads take single results in turns.

A workgroup's tile need not divide the extents. Its threads are numbered along all loops together, so that neighbouring
threads compute neighbouring results, and none goes beyond the end of the tile.
"""

import math

from mlir_sched.payload import LinalgOp
from mlir_sched.targets.target import GpuLimits
from mlir_sched.transform_scripts.common import workgroup_mapping
from mlir_sched.transform_scripts.extents import powers_of_two
from mlir_sched.transform_scripts.gpu.thread_distribution import require_counts
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Loop, Loops

MAX_TILE, MAX_OUTER_TILE = 16384, 16
"""Most results of a workgroup's tile along the last loop, and along any other."""
MAX_RESULTS = 64
"""Most results that a thread computes, one after the other."""


def distribute_in_turns(s: Schedule, root: LinalgOp, loops: Loops) -> None:
    """Distribute the root over workgroups, then result by result over threads, the rest of the dispatch inside.

    After: ``forall workgroups: forall results of the tile, threads in turns: all ops for one result``.

    Args:
        loops: Its loops to distribute, outermost first; at least one. Loops that are not named stay whole.

    Raises:
        IllegalTraceError: The device does not run such workgroups.
    """
    assert s.target.gpu is not None
    tile = _sample_tile(s, loops)
    threads = _sample_threads(s, loops, math.prod(tile.values()), s.target.gpu)
    _check_counts(s, tile, s.target.gpu)
    s.workgroup_size, s.linear_threads = (threads, 1, 1), True
    s.notes["threads"] = threads
    s.fuse_rest(root, s.distribute(root, tile, workgroup_mapping(len(loops))))
    linear = [f"#gpu.thread<linear_dim_{place}>" for place in reversed(range(len(loops)))]
    s.fuse_rest(root, s.distribute(root, dict.fromkeys(loops, 1), linear, over="thread"))


def _sample_tile(s: Schedule, loops: Loops) -> dict[Loop, int]:
    """Draw the tile of a workgroup, whose sizes are powers of two that need not divide."""
    tile: dict[Loop, int] = {}
    for loop in loops:
        most = MAX_TILE if loop is loops[-1] else MAX_OUTER_TILE
        tile[loop] = s.sample_number(f"tile_{loop.name}", powers_of_two(min(loop.extent, most)))
    return tile


def _sample_threads(s: Schedule, loops: Loops, results: int, gpu: GpuLimits) -> int:
    """Draw the threads of a workgroup: whole subgroups, each of whose threads has a result of a whole tile.

    Where the dispatch has fewer results than a subgroup has threads, one subgroup computes all of them.
    """
    least = gpu.subgroup_size if math.prod(loop.extent for loop in loops) < gpu.subgroup_size else results
    most = min(gpu.workgroup_threads, gpu.workgroup_size[0])
    counts = [gpu.subgroup_size * n for n in powers_of_two(most // gpu.subgroup_size)]
    legal = [count for count in counts if count <= max(least, results) and results <= MAX_RESULTS * count]
    s.require(bool(legal), f"no workgroup gives each thread 1 to {MAX_RESULTS} of {results} results")
    return int(s.sample_number("threads", legal))


def _check_counts(s: Schedule, tile: dict[Loop, int], gpu: GpuLimits) -> None:
    """Refuse more workgroups than a grid has; dimensions past the third are counted along z."""
    x, y, *rest = [*(-(-loop.extent // size) for loop, size in reversed(tile.items())), 1, 1]
    require_counts(s, (x, y, math.prod(rest)), gpu)
