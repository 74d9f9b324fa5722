"""Rewrites one after the other: each sees the program as the rewrites before it leave it."""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler import ir

from mlir_sched.library.library import build_library
from mlir_sched.library.rewrite_script import RewriteScript
from mlir_sched.program.rewrites.replacement import append_in_turn
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.tasks.worker.extraction import apply_to_program
from mlir_sched.transform_scripts.script import new_library, print_module


class Composition(ProgramRewrite):
    """A rewrite of what other rewrites make of a program.

    Args:
        first: The first rewrite, of the program as it is.
        others: The further rewrites, at least one. What the last puts in place proves all, as it fails without them.
    """

    def __init__(self, first: ProgramRewrite, *others: ProgramRewrite) -> None:
        self.parts = (first, *others)
        self.name = "+".join(part.name for part in self.parts)
        self.flags = tuple(dict.fromkeys(flag for part in self.parts for flag in part.flags))
        self.refines = first.name if others[-1].refines else ""

    @property
    def mark(self) -> str:
        """The mark of the last part."""
        return self.parts[-1].mark

    def applies(self, program: ir.Module) -> bool:
        """Say whether every rewrite applies to what the rewrites before it make of the program."""
        return all(part.applies(before) for part, before in self._stages(program))

    def append(self, library: ir.Module, program: ir.Module) -> str:
        """Append all rewrites, and a sequence that includes them in turn; see :meth:`ProgramRewrite.append`."""
        symbols = [part.append(library, before) for part, before in self._stages(program)]
        return append_in_turn(library, symbols)

    def _stages(self, program: ir.Module) -> Iterator[tuple[ProgramRewrite, ir.Module]]:
        """Yield every rewrite with the program that it rewrites."""
        *earlier, last = self.parts
        for part in earlier:
            yield part, program
            program = rewritten(part, program)
        yield last, program


def rewritten(rewrite: ProgramRewrite, program: ir.Module) -> ir.Module:
    """Return a program after a rewrite; the program itself stays as it is."""
    library, result = new_library(), program.operation.clone()
    symbol = rewrite.append(library, program)
    apply_to_program(build_library([], RewriteScript(rewrite.name, symbol, print_module(library))), result)
    return result
