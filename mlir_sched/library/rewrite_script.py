"""The script of a rewrite of the whole program, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RewriteScript:
    """A rewrite made for one program.

    Attributes:
        name: Name of the rewrite.
        symbol: The named sequence that rewrites the program; it consumes the program's module and returns it.
        text: A transform library with this sequence and all sequences that it needs.
        flags: Compiler flags to use with the rewrite.
        refines: Name of the program variant that the rewrite improves on once dispatches have scripts; empty for none.
        mark: Value of the attribute that proves the rewrite; of a rewrite with several parts, that of the last one.
        algorithms: The parts of the program (``library/parts.py``) that the rewrite computes by another algorithm than
            ``base`` does.
        base: Name of the rewrite that is alike but for these algorithms; empty for a rewrite without any.
    """

    name: str
    symbol: str
    text: str
    flags: tuple[str, ...] = ()
    refines: str = ""
    mark: str = ""
    algorithms: tuple[str, ...] = ()
    base: str = ""
