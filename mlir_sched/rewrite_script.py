"""What a rewrite of the whole program adds to a transform library: plain data."""

from __future__ import annotations

from dataclasses import dataclass

REWRITTEN = "mlir_sched.rewritten"
"""Attribute with the name of the rewrite, on one op of every piece of program that a rewrite put in place."""


@dataclass(frozen=True)
class RewriteScript:
    """A rewrite made for one program.

    Attributes:
        name: The rewrite.
        symbol: The named sequence that rewrites the program; it consumes the program's module and returns it.
        text: A transform library with that sequence and all that it needs.
    """

    name: str
    symbol: str
    text: str
