"""Direct convolutions and poolings on GPUs: any rank, stride, dilation, grouping and layout, with fill and epilogues.

A thread keeps the accumulators of a tile along two loops in registers while it sums all of the filter and the input
channels, and computes fill and epilogues in the same tile. One of the two loops is the vector loop, the other one
shares its loads. A third loop has workgroups of its own; every other loop is walked by each thread. The filter's loops
are tiled by 1, so the code to vectorize has no windows left: it is a product of two matrices, or element-wise.

Source: the tile of a thread is that of :mod:`~mlir_sched.transform_scripts.gpu.contraction`, the roles of the loops are
those of :mod:`~mlir_sched.transform_scripts.common`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers, patterns
from mlir_sched.transform_scripts.common import MAX_REDUCTION_STEP, OnThreads, by_one, sharing_loops, vector_loops
from mlir_sched.transform_scripts.extents import vector_elements
from mlir_sched.transform_scripts.gpu.contraction import MAX_THREAD_VECTORS
from mlir_sched.transform_scripts.gpu.thread_distribution import DIMENSIONS
from mlir_sched.transform_scripts.module import ScheduleModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Convolution, Loop, Loops


@dataclass(frozen=True)
class ThreadConvolution:
    """A convolution, and what becomes of its parallel loops longer than 1.

    Attributes:
        conv: The convolution with its fill and epilogues.
        distributed: At most three loops over workgroups; the last two, in the order of the result's dimensions, are
            also loops over threads.
        walked: Loops that each thread walks one iteration after the other.
        unrolled: Loops that are not walked and not a dimension of the vectors, because their neighbouring iterations
            read pixels that are no neighbours.
    """

    conv: Convolution
    distributed: Loops
    walked: Loops
    unrolled: Loops

    @property
    def vectors(self) -> Loops:
        """The loops that are a dimension of the vectors."""
        return tuple(loop for loop in self.distributed[-2:] if loop not in (*self.walked, *self.unrolled))


class ConvolutionTiling(OnThreads, ScheduleModule):
    """A module that tiles a convolution or pooling so that each thread accumulates its tile in registers."""

    name: ClassVar[str] = "convolution"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> ThreadConvolution | None:
        """Match a dispatch of [fill,] convolution [, element-wise ops on its result], with a vector loop, unpadded."""
        conv = None if dispatch.other_ops else matchers.convolution(op, dispatch)
        vectors = vector_loops(conv, vector_elements(op, target)) if conv else ()
        return _by_role(conv, vectors[0]) if conv and vectors else None

    def parallel(self, found: ThreadConvolution, dispatch: Dispatch) -> Loops:
        """Return the loops over workgroups and threads."""
        del dispatch
        return found.distributed

    def schedule(self, s: Schedule, found: ThreadConvolution) -> None:
        """Run the whole sum in the tile of a thread.

        After: ``forall threads: for walked: { fill; for filter, channels: for strided: multiply and add; epilogues }``.
        """
        conv = found.conv
        s.require(math.prod(s.extent(loop) for loop in found.vectors) > 1, "a thread's vectors have one element")
        s.tile(conv.root, by_one(loop for loop in found.walked if s.extent(loop) > 1), fuse=True)
        sizes = _sample_reduction(s, conv, {loop: s.extent(loop) for loop in found.distributed[-2:]})
        s.tile(conv.op, sizes, order=tuple(sizes))
        rows = by_one(loop for loop in found.unrolled if s.extent(loop) > 1)
        s.unroll(*(made for op in conv.ops for made in s.tile(op, rows)))
        s.fold_unit_dims()
        s.vectorize(*conv.ops, then=patterns.CONTRACT)


def _by_role(conv: Convolution, vector: Loop) -> ThreadConvolution:
    """Return a convolution whose loops over threads are a vector loop and the best loop that shares its loads.

    A loop with strides is unrolled where the vectors of its iterations lie one after the other in the result. Where
    they interleave, IREE 3.13 would keep the accumulators in memory, so the loop is walked.
    """
    sharing = [loop for loop in sharing_loops(conv, vector) if loop.extent > 1]
    pair = sorted((vector, *sharing[:1]), key=lambda loop: _place(conv.root, loop))
    others = [loop for loop in conv.parallel if loop.extent > 1 and loop not in pair]
    others.sort(key=lambda loop: loop.extent)
    free = len(DIMENSIONS) - len(pair)
    image, _ = conv.op.image_and_filter
    strided = [loop for loop in pair if image.step(conv.position(loop)) > 1]
    scattered = [loop for loop in strided if _place(conv.op, loop) > _place(conv.op, vector)]
    unrolled = tuple(loop for loop in strided if loop not in scattered)
    return ThreadConvolution(conv, (*others[-free:], *pair), (*others[:-free], *scattered), unrolled)


def _place(op: LinalgOp, loop: Loop) -> int:
    """Return which dimension of an op's result a loop walks."""
    return [position for _, position in op.outputs[0].single_steps].index(loop.position(op))


def _sample_reduction(s: Schedule, conv: Convolution, tile: dict[Loop, int]) -> dict[Loop, int]:
    """Draw the sizes of the reduction loops, outermost first, and check the code that a thread's tile unrolls into."""
    dims = conv.op.convolution_dims
    taps, channels = _longer(conv, dims.filter_loop), _longer(conv, dims.input_channel)
    step = s.sample_tile("channels", channels[-1], most=MAX_REDUCTION_STEP, power=1.0) if channels else 1
    s.require_registers(conv.op, tile, step=step, most_vectors=MAX_THREAD_VECTORS)
    summed = by_one(channels) | dict.fromkeys(channels[-1:], step)
    walked = len(channels) > 1 or any(step < channel.extent for channel in channels)  # over several iterations
    if taps and walked and s.sample_choice("innermost", ("channels", "filter")) == "filter":
        return summed | by_one(taps)
    return by_one(taps) | summed


def _longer(conv: Convolution, positions: Sequence[int]) -> Loops:
    return tuple(conv.loops[position] for position in positions if conv.loops[position].extent > 1)
