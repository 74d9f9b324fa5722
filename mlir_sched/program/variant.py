"""A variant of a program, as data."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_sched.library.rewrite_script import RewriteScript


@dataclass(frozen=True)
class Variant:
    """A way to compile and to run a program.

    Attributes:
        name: Unique among the variants of a program.
        flags: Compiler flags.
        rewrite: The rewrite of the program before dispatches are formed; None for no rewrite.
        local_sync: Whether the program runs in the calling thread (IREE's ``local-sync``) even in a run on several
            threads: waking IREE's workers may take longer than the time that they save a short program.
    """

    name: str
    flags: tuple[str, ...]
    rewrite: RewriteScript | None = None
    local_sync: bool = False

    @property
    def refines(self) -> str:
        """Name of the variant that this one improves on once dispatches have scripts; empty for none."""
        return self.rewrite.refines if self.rewrite else ""

    def threads(self, threads: int) -> int:
        """Return the number of threads that the program runs on, given the number of threads of the run."""
        return 1 if self.local_sync else threads
