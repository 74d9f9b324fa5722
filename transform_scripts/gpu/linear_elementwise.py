"""Element-wise dispatches on GPUs with any number of loops and any extents: threads take single elements in turns.

A workgroup's tile need not divide the extents. Its threads are numbered along all loops together, so that neighbouring
threads compute neighbouring elements, and none goes beyond the end of the tile.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import GpuLimits, Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common.elementwise import check_instructions, steps_over
from mlir_sched.transform_scripts.common.workgroups import workgroup_mapping
from mlir_sched.transform_scripts.extents import powers_of_two
from mlir_sched.transform_scripts.gpu.on_threads import OnThreads
from mlir_sched.transform_scripts.gpu.thread_distribution import require_counts
from mlir_sched.transform_scripts.module import MatchingModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Elementwise, Loop, Loops, parallel_loops

MAX_TILE, MAX_OUTER_TILE = 16384, 16
"""Most elements of a workgroup's tile along the last loop, and along any other."""
MAX_ELEMENTS = 64
"""Most elements that a thread computes, one after the other."""


class LinearElementwise(OnThreads, MatchingModule):
    """A module that distributes tiles over workgroups, and the elements of a tile over threads in turns."""

    name: ClassVar[str] = "linear_elementwise"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Elementwise | None:
        """Match a dispatch of element-wise ops and fills that reads element after element."""
        del target
        found = matchers.elementwise(op, dispatch)
        return None if found is None or any(steps_over(op, loop) for loop in parallel_loops(op)) else found

    def left_open(self, found: Elementwise, dispatch: Dispatch) -> dict[str, Any]:
        """Leave only lowering open."""
        del found, dispatch
        return {}

    def schedule(self, s: Schedule, found: Elementwise) -> None:
        """Distribute over workgroups, then element by element over threads.

        After: ``forall workgroups: forall elements of the tile, threads in turns: all ops on one element``.
        """
        assert s.target.gpu is not None
        root, loops = found.root, found.loops
        tile = _sample_tile(s, loops)
        threads = _sample_threads(s, math.prod(tile.values()), s.target.gpu)
        _check_counts(s, tile, s.target.gpu)
        check_instructions(s, 1)
        s.workgroup_size, s.linear_threads = (threads, 1, 1), True
        s.notes["threads"] = threads
        s.fuse_rest(root, s.distribute(root, tile, workgroup_mapping(len(loops))))
        linear = [f"#gpu.thread<linear_dim_{place}>" for place in reversed(range(len(loops)))]
        s.fuse_rest(root, s.distribute(root, dict.fromkeys(loops, 1), linear, over="thread"))
        s.vectorize(*found.ops)


def _sample_tile(s: Schedule, loops: Loops) -> dict[Loop, int]:
    """Draw the tile of a workgroup, whose sizes are powers of two that need not divide."""
    tile: dict[Loop, int] = {}
    for loop in loops:
        most = MAX_TILE if loop is loops[-1] else MAX_OUTER_TILE
        tile[loop] = s.sample_number(f"tile_{loop.name}", powers_of_two(min(loop.extent, most)))
    return tile


def _sample_threads(s: Schedule, elements: int, gpu: GpuLimits) -> int:
    """Draw the threads of a workgroup: whole subgroups, each of whose threads has an element of a whole tile."""
    most = min(gpu.workgroup_threads, gpu.workgroup_size[0])
    counts = [gpu.subgroup_size * n for n in powers_of_two(most // gpu.subgroup_size)]
    legal = [count for count in counts if count <= elements <= MAX_ELEMENTS * count]
    s.require(bool(legal), f"no workgroup gives each thread 1 to {MAX_ELEMENTS} of {elements} elements")
    return int(s.sample_number("threads", legal))


def _check_counts(s: Schedule, tile: dict[Loop, int], gpu: GpuLimits) -> None:
    """Refuse more workgroups than a grid has; dimensions past the third are counted along z."""
    x, y, *rest = [*(-(-loop.extent // size) for loop, size in reversed(tile.items())), 1, 1]
    require_counts(s, (x, y, math.prod(rest)), gpu)
