"""Convolutions: any rank, stride, dilation, grouping and layout, with fill and element-wise epilogues.

What every target shares: which dispatches these are, which loops of the ops belong together, and which loops make a
good register tile.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir_sched.payload import PAD, Dispatch, LinalgOp, OpKind
from mlir_sched.transform_scripts.common.epilogues import corresponding_loops
from mlir_sched.transform_scripts.common.extents import innermost_output_loop


@dataclass(frozen=True)
class Nest:
    """The ops of a convolution dispatch by index.

    Attributes:
        convolution: The convolution.
        fill: What initialises its result, if that is in the dispatch.
        epilogues: The element-wise ops behind it, in order.
        loops: Per op, which of its loops walks what each parallel loop of the convolution walks.
    """

    convolution: int
    fill: int | None
    epilogues: tuple[int, ...]
    loops: dict[int, dict[int, int]]

    @property
    def root(self) -> int:
        """The op that makes the dispatch's result."""
        return self.epilogues[-1] if self.epilogues else self.convolution

    @property
    def ops(self) -> tuple[int, ...]:
        """All ops in program order."""
        return (*(() if self.fill is None else (self.fill,)), self.convolution, *self.epilogues)


def match(op: LinalgOp, dispatch: Dispatch) -> Nest | None:
    """Return the nest of a dispatch whose convolution is the op, or None when it is of another form.

    Tensors that are loaded may be padded inside the dispatch.
    """
    if op.kind is not OpKind.CONVOLUTION or set(dispatch.other_ops) - {PAD} or len(dispatch.results) != 1:
        return None
    init = op.outputs[0].producer
    fill = init if init is not None and dispatch.ops[init].kind is OpKind.FILL else None
    epilogues = dispatch.ops[op.index + 1 :]
    loops = {op.index: {loop: loop for loop in op.parallel_dims}}
    loops |= {epilogue.index: corresponding_loops(op, epilogue, dispatch) for epilogue in epilogues}
    if fill is not None:
        loops[fill] = {expr.dims[0]: place for place, expr in enumerate(op.outputs[0].indexing_map)}
    nest = Nest(op.index, fill, tuple(epilogue.index for epilogue in epilogues), loops)
    if len(nest.ops) != len(dispatch.ops) or dispatch.results[0] != nest.root:
        return None
    fits = all(other.kind is OpKind.ELEMENTWISE and _covers(loops[other.index], other, op) for other in epilogues)
    return nest if fits else None


def vector_loops(op: LinalgOp, lanes: int) -> tuple[int, ...]:
    """Return the loops that may be vectorized, those first that are better: they walk the image in steps of 1 or not.

    That is the result's contiguous loop, where it does and fills a vector; else the longest two other ones come too.
    None walks a padded dimension, where every element of a vector would have to be looked at; when the contiguous loop
    does, there is none.
    """
    image, _ = op.image_and_filter
    walks_image = [loop for loop in op.parallel_dims if image.step(loop) <= 1 and op.extents[loop] > 1]
    usable = [loop for loop in walks_image if not image.is_padded_along(loop)]
    contiguous = innermost_output_loop(op)
    if contiguous is not None and image.is_padded_along(contiguous):
        return ()
    if contiguous in usable and op.extents[contiguous] >= lanes:
        return (contiguous,)
    others = sorted((loop for loop in usable if loop != contiguous), key=lambda loop: -op.extents[loop])
    return (*(loop for loop in usable if loop == contiguous), *others[:2])


def row_loops(op: LinalgOp, vector: int) -> tuple[int, ...]:
    """Return the loops that share what a vector loop loads, the best first.

    A channel loop shares the image, an image loop the filter; groups and phases share nothing.
    """
    dims = op.convolution_dims
    image, channels = (*reversed(dims.output_image), *dims.batch), tuple(reversed(dims.output_channel))
    ranked = (*channels, *image) if vector in image else (*image, *channels)
    return tuple(loop for loop in ranked if loop != vector)


def _covers(loops: dict[int, int], epilogue: LinalgOp, op: LinalgOp) -> bool:
    """Say whether the loops of an epilogue are those of the convolution, in whatever order."""
    walked = [loops.get(loop, -1) for loop in op.parallel_dims if op.extents[loop] > 1]
    return sorted(walked) == [loop for loop in epilogue.parallel_dims if epilogue.extents[loop] > 1]
