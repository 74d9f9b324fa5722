"""The script of a rewrite of the whole program, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RewriteScript:
    """A rewrite made for one program.

    Attributes:
        name: Name of the rewrite, as a library states it.
        symbol: The named sequence that rewrites the program; it consumes the program's module and returns it.
        text: A transform library with this sequence and all sequences that it needs.
    """

    name: str
    symbol: str
    text: str
