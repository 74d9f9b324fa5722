"""The interface of a rewrite of the whole program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from iree.compiler import ir

from mlir_sched.program.rewrites.walked_program import WalkedProgram


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

    def requires(self, program: WalkedProgram) -> tuple[ProgramRewrite, ...]:  # noqa: ARG002 - most need nothing
        """Return the rewrites that have to come before this one, in order, where they apply; by default none.

        Args:
            program: As in :meth:`finds`, before these rewrites.
        """
        return ()

    @abstractmethod
    def finds(self, program: WalkedProgram) -> Any:
        """Return what there is to rewrite in a program, as :meth:`append` takes it; something empty for nothing.

        A program is asked about once, by all plans that begin alike (:class:`~.staged_program.StagedProgram`).

        Args:
            program: The program, after what has to come before; it stays as it is.
        """

    @abstractmethod
    def append(self, library: ir.Module, program: WalkedProgram, found: Any) -> str:
        """Append the rewrite to a transform library and return the symbol of its named sequence.

        The sequence consumes one handle, the program's ``builtin.module``, and returns it. It fails (with an error of
        ``iree-compile``) unless it finds as much to rewrite as there is in ``program``.

        Args:
            library: A module with ``transform.with_named_sequence``, in the current context.
            program: As in :meth:`finds`, in the same context.
            found: What :meth:`finds` returned, not empty.
        """
