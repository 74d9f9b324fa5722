"""Parts of transform modules that name no target: bases of modules, choices of loops, names and mappings.

How one processor computes its tile is left to each target: a CPU core uses caches and registers, a GPU thread only
registers.
"""

import hashlib
from collections.abc import Iterable
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.module import ScheduleModule, TransformModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction, Convolution, Elementwise, Loop, Loops, Reduction

MAX_REDUCTION_STEP = 16


class ContractionModule(ScheduleModule):
    """A module that tiles a contraction with its fill and element-wise epilogues; each target adds the programs.

    Contractions are matmul, batch matmul, vector times matrix, any transposition, any generic that contracts.
    """

    name: ClassVar[str] = "contraction"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Contraction | None:
        """Match a dispatch of [fill,] contraction [, element-wise ops on its result]."""
        del target
        return matchers.contraction(op, dispatch)


def by_one(loops: Iterable[Loop]) -> dict[Loop, int]:
    """Return the sizes that tile loops to single iterations."""
    return dict.fromkeys(loops, 1)


def tile_reduction(s: Schedule, mm: Contraction, step: int) -> None:
    """Tile the outer reduction loops to single iterations, and the innermost reduction loop by a step."""
    s.tile(mm.op, by_one(mm.outer_reductions))
    s.tile(mm.op, {mm.reduction: step})


class ElementwiseModule(ScheduleModule):
    """A module that schedules dispatches of element-wise ops and fills; each target decides how a tile is walked."""

    name: ClassVar[str] = "elementwise"
    gathers: ClassVar[bool] = False
    """Whether it schedules ops that read elements at computed places."""

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Elementwise | None:
        """Match the root of a dispatch of element-wise ops and fills."""
        del target
        return matchers.elementwise(op, dispatch, gathers=self.gathers)


def steps_over(op: LinalgOp, loop: Loop) -> bool:
    """Say whether an input is read along a loop in any other way than element after element."""
    position = loop.position(op)
    return any(position in expr.dims and not expr.is_dim for o in op.inputs for expr in o.indexing_map)


def check_instructions(s: Schedule, vectors: float) -> None:
    """Refuse tiles of ``vectors`` vectors of the whole dispatch if their code would be too long; note their number."""
    s.require_instructions(vectors, *s.dispatch.ops)
    s.notes["unrolled_vectors"] = vectors


class ReductionModule(ScheduleModule):
    """A module that schedules a dispatch whose reductions all run along the rows of one result."""

    name: ClassVar[str] = "reduction"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Reduction | None:
        """Match the first reduction of a dispatch of element-wise ops and reductions along the rows of one result."""
        del target
        return matchers.reduction(op, dispatch)

    def parallel(self, found: Reduction, dispatch: Dispatch) -> Loops:
        """Return the row loops of the root."""
        del dispatch
        return found.parallel


def vector_loops(conv: Convolution, lanes: int) -> Loops:
    """Return the loops that may be vectorized, the best first.

    A vector loop walks the image in steps of 1, or does not walk the image. If the result's contiguous loop is such a
    loop and fills a vector, only this loop is returned; otherwise the two longest other vector loops follow it. A loop
    along a padded dimension is left out, because every element of a vector would need a check of its own; if that is
    the contiguous loop, no loop is returned.
    """
    image, _ = conv.op.image_and_filter
    walks_image = [loop for loop in conv.parallel if image.step(conv.position(loop)) <= 1 and loop.extent > 1]
    usable = [loop for loop in walks_image if not image.is_padded_along(conv.position(loop))]
    contiguous = conv.contiguous
    if contiguous is not None and image.is_padded_along(conv.position(contiguous)):
        return ()
    along = [loop for loop in usable if loop is contiguous]
    if along and along[0].extent >= lanes:
        return (along[0],)
    others = sorted((loop for loop in usable if loop not in along), key=lambda loop: -loop.extent)
    return (*along, *others[:2])


def sharing_loops(conv: Convolution, vector: Loop) -> Loops:
    """Return the loops whose iterations share the loads of a vector loop, the best first.

    A channel loop shares the image, an image loop the filter; groups and phases share nothing.
    """
    dims = conv.op.convolution_dims
    image, channels = (*reversed(dims.output_image), *dims.batch), tuple(reversed(dims.output_channel))
    ranked = (*channels, *image) if conv.position(vector) in image else (*image, *channels)
    return tuple(conv.loops[position] for position in ranked if conv.loops[position] is not vector)


def workgroup_mapping(count: int) -> list[str]:
    """Return the mapping attributes of ``count`` distributed loops, outermost first.

    Source: IREE's WorkgroupMappingAttr; dimensions past the third are linearised into z (``z:1``, ``z:2``, ...).
    """
    names = ["x", "y", "z", *(f"z:{extra}" for extra in range(1, max(1, count - 2)))]
    return [f"#iree_codegen.workgroup_mapping<{name}>" for name in reversed(names[:count])]


def with_unique_name(text: str, placeholder: str, name: str) -> str:
    """Return a text in MLIR syntax whose symbol, ``@placeholder``, is a name and a digest: equal texts are one."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return text.replace(f"@{placeholder}", f"@{name}_{digest}", 1)


class OnThreads(TransformModule):
    """A module for all targets with :class:`~mlir_sched.targets.target.GpuLimits`, whatever their backend."""

    def is_for(self, target: Target) -> bool:
        """Say whether the target's workgroups have threads."""
        return target.gpu is not None

    @property
    def made_for(self) -> str:
        """What the module can be used for, in the user's words."""
        return "GPUs"
