"""Images that are enlarged channels first, as by ``torch.nn.functional.interpolate``, enlarged with channels last.

IREE 3.13 reads the pixels of such an image element by element. With channels last the elements of a pixel are adjacent,
and MLIR's vectorizer reads vectors of them (``vectorizeTensorExtract`` in Vectorization.cpp), provided that the other
indices stay the same along the vector. It sees that they do where the body reads them from tensors, but not where they
are operands; so the body reads the tensors of indices, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg, tensor

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.constant_values import constant_globals, is_constant
from mlir_sched.program.rewrites.convolution_ops import TO_FIRST, TO_LAST, leads_to_convolutions
from mlir_sched.program.rewrites.layout.bodies import INDEX
from mlir_sched.program.rewrites.layout.gather_rewrite import GatherRewrite
from mlir_sched.program.rewrites.layout.gather_site import BATCH, CHANNEL, EXTRACT, GatherSite, loop_of
from mlir_sched.program.rewrites.linalg_ops import copied, generic, index, maps_of, transposed


@dataclass(frozen=True)
class ChannelsLastGather(GatherRewrite):
    """Reads images with channels last, and transposes the result back."""

    name = "channels_last_gather"

    def fitting(self, gathers: Sequence[GatherSite], program: ir.Module) -> list[GatherSite]:
        """Return the gathers for convolutions from images that vary."""
        constants = constant_globals(program)
        return [site for site in gathers if _is_between_convolutions(site, constants)]

    def compute(self, site: GatherSite, *inputs: Any) -> Any:
        """Return the gathered image, computed with channels last and transposed back."""
        indices, images = inputs[: len(site.indices)], inputs[len(site.indices) :]
        last = {image: transposed(given, TO_LAST) for image, given in zip(site.images, images, strict=True)}
        kind = site.result.type
        empty = tensor.empty([kind.shape[dim] for dim in TO_LAST], kind.element_type)
        maps, kinds = [ir.AffineMap.get_identity(4)], ["parallel"] * 4
        return transposed(generic([], empty, maps, kinds, lambda _: _element(site, indices, last)), TO_FIRST)

    def marked(self, result: Any) -> Any:
        """Return the gather: the transpose behind it may be cancelled."""
        return producer(producer(result).operands[0])


def _is_between_convolutions(site: GatherSite, constants: frozenset[str]) -> bool:
    """Say whether a gather keeps channels, reads an image that varies, and convolutions read the result.

    What no convolution reads, such as the result of the program, is to be channels first in the end.
    """
    varies = not all(is_constant(image, constants) for image in site.images)
    return site.keeps_channels and varies and leads_to_convolutions(site.result)


def _element(site: GatherSite, indices: Sequence[Any], images: Mapping[Any, Any]) -> Any:
    """Return an element of the result, computed in a body with channels last.

    Args:
        site: The gather.
        indices: The tensors of indices.
        images: The images with channels last, by the image with channels first.
    """
    maps, arguments = maps_of(site.op), list(site.block.arguments)
    made = dict(images)
    for value in site.values:
        if value in arguments:
            number = arguments.index(value)
            made[value] = _read(indices[number], maps[number])
        elif value not in made:
            made[value] = _copied(producer(value), made)
    return made[site.values[-1]]


def _read(source: Any, places: ir.AffineMap) -> Any:
    """Return the element of a tensor at loops and constants."""
    at = (_loop(expr.position) if isinstance(expr, ir.AffineDimExpr) else index(expr.value) for expr in places.results)
    return tensor.extract(source, list(at))


def _copied(op: Any, made: Mapping[Any, Any]) -> Any:
    """Return what an op of the body computes from values that were made."""
    if op.name == INDEX:
        return _loop(loop_of(op))
    if op.name != EXTRACT:
        return copied(op, [made[operand] for operand in op.operands]).results[0]
    image, _, _, row, column = op.operands
    batch = index(0) if image.type.shape[BATCH] == 1 else _loop(BATCH)
    return tensor.extract(made[image], [batch, made[row], made[column], _loop(CHANNEL)])


def _loop(dim: int) -> Any:
    """Return the index, among the loops with channels last, of a loop with channels first."""
    return linalg.IndexOp(TO_LAST.index(dim)).result
