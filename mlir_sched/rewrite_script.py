"""What a rewrite of the whole program adds to a transform library, and how to see that it was made: plain data."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

REWRITTEN = "mlir_sched.rewritten"
"""Attribute with the name of the rewrite, on one op of every piece of program that a rewrite put in place."""
_REWRITTEN = re.compile(rf'\b{re.escape(REWRITTEN)} = "([^"]*)"')


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


def rewrites_in(text: str) -> dict[str, int]:
    """Return how many pieces of a program each rewrite put in place, by its name.

    Args:
        text: The program after IREE's ``preprocessing`` phase (``iree-compile --compile-to=preprocessing``).
    """
    return dict(sorted(Counter(found.group(1) for found in _REWRITTEN.finditer(text)).items()))
