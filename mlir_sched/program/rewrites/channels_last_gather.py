"""Images that are enlarged channels first, as by ``torch.nn.functional.interpolate``, enlarged with channels last.

IREE 3.13 reads the pixels of such an image element by element. With channels last the elements of a pixel are adjacent,
and MLIR's vectorizer reads vectors of them (``vectorizeTensorExtract`` in Vectorization.cpp), provided that the other
indices stay the same along the vector. It sees that they do where the body reads them from tensors, but not where they
are operands; so the body reads the tensors of indices, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg, tensor, transform

from mlir_sched.compiler.operations import producer, walk
from mlir_sched.program.rewrites.constants import constant_globals, is_constant
from mlir_sched.program.rewrites.convolution_ops import TO_FIRST, TO_LAST, leads_to_convolutions
from mlir_sched.program.rewrites.gather_site import (
    BATCH,
    CHANNEL,
    EXTRACT,
    GENERIC,
    INDEX,
    GatherSite,
    gather_site,
    loop_of,
)
from mlir_sched.program.rewrites.linalg_ops import copied, generic, index, maps_of, transposed
from mlir_sched.program.rewrites.replacement import match_dag, operand_of, ops_named
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite, told_apart


class ChannelsLastGather(SiteRewrite[GatherSite]):
    """Reads images with channels last, and transposes the result back."""

    name = "channels_last_gather"

    def sites(self, program: ir.Module) -> list[GatherSite]:
        """Return the gathers for convolutions from images that vary, if no matcher takes them for another gather."""
        constants = constant_globals(program)
        gathers = [site for op in walk(program.operation) if (site := gather_site(op)) is not None]
        found = [site for site in gathers if _is_between_convolutions(site, constants)]
        others = {site.matched for site in gathers if site not in found}
        return [site for site in told_apart(found, lambda site: site.matched) if site.matched not in others]

    def match(self, root: Any, site: GatherSite) -> None:
        """Emit the comparison of the op that makes an element, and of what the element is computed from."""
        transform.MatchOperationNameOp(root, [site.last.name])
        match_dag(site.last, site.leaves, root)

    def find(self, module: Any, site: GatherSite, matcher: str) -> Any:
        """Emit a handle on the ops with such bodies that have the form and the type of the site's."""
        any_op = transform.AnyOpType.get()
        form = {name: site.op.attributes[name] for name in ("indexing_maps", "iterator_types")}
        each = transform.ForeachOp([any_op], [super().find(module, site, matcher)])
        with ir.InsertionPoint(each.body):
            parent = transform.GetParentOp(any_op, each.bodyTargets[0], op_name=GENERIC).result
            transform.YieldOp([ops_named(parent, GENERIC, form, site.result.type)])
        return each.results[0]

    def inputs(self, op: Any, site: GatherSite) -> list[Any]:
        """Emit handles on the tensors of indices, and on the images, which only the body names."""
        read = [extract.operands[0] for extract in site.extracts]
        extracts = transform.SplitHandleOp([transform.AnyOpType.get()] * len(read), ops_named(op, EXTRACT)).results
        images = [operand_of(extracts[read.index(image)], 0) for image in site.images]
        return [*(operand_of(op, number) for number in range(len(site.indices))), *images]

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
