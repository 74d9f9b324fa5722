"""The script of a rewrite of the whole program, and the sign that it was made: plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RewriteScript:
    """A rewrite made for one program.

    Attributes:
        name: The rewrite.
        symbol: The named sequence that rewrites the program; it consumes the program's module and returns it.
        text: A transform library with that sequence and all that it needs.
        flags: Compiler flags that go with it.
    """

    name: str
    symbol: str
    text: str
    flags: tuple[str, ...] = ()
