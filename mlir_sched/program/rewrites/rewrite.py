"""The interface of a rewrite of the whole program."""

from __future__ import annotations

from abc import ABC, abstractmethod

from iree.compiler import ir


class ProgramRewrite(ABC):
    """Rewrites a whole program, as it enters IREE's preprocessing phase, by ops of the transform dialect.

    Attributes:
        name: Name of the rewrite in records and reports.
        flags: Further flags of ``iree-compile`` that the rewritten program needs to be fast.
        refines: Name of the program variant that this rewrite improves on once its dispatches have scripts; without
            scripts the rewritten program is far slower than with them. Empty for a rewrite that is no such refinement.
    """

    name: str
    flags: tuple[str, ...] = ()
    refines: str = ""

    @property
    def mark(self) -> str:
        """Value of the attribute that proves the rewrite, on the ops that it put in place.

        Dispatches keep these ops: a rewrite marks them alike in all programs, so that equal dispatches stay equal.
        """
        return self.name

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
        ``iree-compile``) unless it finds as much to rewrite as there is in ``program``.

        Args:
            library: A module with ``transform.with_named_sequence``, in the current context.
            program: As in :meth:`applies`, in the same context; the rewrite applies to it.
        """
