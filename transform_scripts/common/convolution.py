"""The choice of loops for the register tile of a convolution, by their roles and not by a target."""

from __future__ import annotations

from mlir_sched.transform_scripts.structures import Convolution, Loop, Loops


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
