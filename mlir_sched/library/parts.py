"""The parts of a program that have a choice of algorithms, and the names of these algorithms.

A part is all convolutions of one shape, or all attentions of one shape, and is named by the shape: ``56x56x64x64``,
``attention 12x128x128x64``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LAYOUT, ATTENTION = "channels_last", "decomposed_attention"
"""The rewrites that are compiled right after the default: one decides the layout of a whole network, the other makes
dispatches that scripts can be written for of those that take most of a transformer's time. In programs that they have
rewritten, convolutions or attentions have a choice of algorithms."""
DIRECT, WINOGRAD = "direct", "winograd"
"""The algorithms of convolutions."""
DECOMPOSED, FUSED = "decomposed", "fused"
"""The algorithms of attentions: three dispatches, or one."""
_ATTENTION = "attention "


def attention_part(shape: str) -> str:
    """Return the part of the attentions of a shape."""
    return _ATTENTION + shape


def attentions_in(parts: Iterable[str]) -> list[str]:
    """Return the shapes of the attentions among parts."""
    return [part.removeprefix(_ATTENTION) for part in parts if part.startswith(_ATTENTION)]


def convolutions_in(parts: Iterable[str]) -> list[str]:
    """Return the shapes of the convolutions among parts."""
    return [part for part in parts if not part.startswith(_ATTENTION)]


def algorithms_of(part: str) -> tuple[str, str]:
    """Return the algorithms of a part, first that which a program has without a decision."""
    return (DECOMPOSED, FUSED) if part.startswith(_ATTENTION) else (DIRECT, WINOGRAD)


def parts_of(variant: str, parts: Sequence[str]) -> tuple[str, ...]:
    """Return those of a program's parts that have a choice of algorithms in a variant.

    Args:
        variant: Name of the variant, or of its rewrite.
        parts: All parts of the program.
    """
    rewrites = variant.split("+")
    convolutions, attentions = rewrites[0] == LAYOUT, ATTENTION in rewrites
    return tuple(part for part in parts if (attentions if part.startswith(_ATTENTION) else convolutions))
