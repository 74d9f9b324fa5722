"""Transform libraries: sequences with their matchers, and rewrites, in one file that IREE runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RewriteScript:
    """The script of a rewrite of one whole program, as plain data.

    Attributes:
        name: Name of the rewrite, as a library states it.
        symbol: The named sequence that rewrites the program; it consumes the program's module and returns it.
        text: A transform library with this sequence and all sequences that it needs.
        mark: Value of the attribute that proves the script: what its last rewrite leaves in the program, which fails
            unless those in front of it are made. Empty for a script that nothing asks for a proof of.
    """

    name: str
    symbol: str
    text: str
    mark: str = ""
