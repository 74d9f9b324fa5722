"""What a rewrite of the whole program is, and how to see in compiled IR that it was made."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter

from iree.compiler import ir

REWRITTEN = "mlir_sched.rewritten"
"""Attribute with the name of the rewrite, on one op of every piece of program that a rewrite put in place."""
_REWRITTEN = re.compile(rf'\b{re.escape(REWRITTEN)} = "([^"]*)"')


class ProgramRewrite(ABC):
    """Rewrites a whole program, as it enters IREE's preprocessing phase, by ops of the transform dialect.

    Attributes:
        name: What the rewrite is called in records and reports; also the value of the attribute that proves it.
    """

    name: str

    @abstractmethod
    def applies(self, program: ir.Module) -> bool:
        """Say whether a program has something to rewrite.

        Args:
            program: The program after IREE's ``abi`` phase (``iree-compile --compile-to=abi``).
        """

    @abstractmethod
    def append(self, library: ir.Module, program: ir.Module) -> str:
        """Append the rewrite to a transform library and return the symbol of its named sequence.

        The sequence consumes one handle, the program's ``builtin.module``, and returns it. It fails (with an error of
        ``iree-compile``) unless it rewrites as much as was found in the program given here.

        Args:
            library: A module with ``transform.with_named_sequence``, in the current context.
            program: As in :meth:`applies`, in the same context; it applies.
        """


def rewrites_in(text: str) -> dict[str, int]:
    """Return how many pieces of a program each rewrite put in place, by its name.

    Args:
        text: The program after IREE's ``preprocessing`` phase (``iree-compile --compile-to=preprocessing``).
    """
    return dict(Counter(found.group(1) for found in _REWRITTEN.finditer(text)))
