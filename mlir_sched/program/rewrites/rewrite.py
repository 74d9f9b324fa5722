"""The interface of a rewrite of the whole program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from iree.compiler import ir


class ProgramRewrite(ABC):
    """Rewrites a whole program, as it enters IREE's preprocessing phase, by ops of the transform dialect.

    Every rewrite is a frozen dataclass. Its fields are its options.

    Attributes:
        flags: Further flags of ``iree-compile`` that the rewritten program needs to be fast.
        needs_scripts: Whether the rewritten program is far slower than before as long as its dispatches have no
            scripts.
    """

    flags: ClassVar[tuple[str, ...]] = ()
    needs_scripts: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """The rewrite and its options in records and reports.

        The name is also the value of the attribute that proves the rewrite, on the ops that it put in place. Dispatches
        keep these ops: a rewrite marks them alike in all programs, so that equal dispatches stay equal.
        """

    def requires(self, program: ir.Module) -> tuple[ProgramRewrite, ...]:  # noqa: ARG002 - most need nothing
        """Return the rewrites that have to come before this one, in order, where they apply; by default none.

        Args:
            program: As in :meth:`applies`, before these rewrites.
        """
        return ()

    @abstractmethod
    def applies(self, program: ir.Module) -> bool:
        """Say whether a program has something to rewrite.

        Args:
            program: The program after IREE's ``abi`` phase (``iree-compile --compile-to=abi``), and after what has to
                come before.
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
