"""A program and what rewrites make of it, stage by stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from iree.compiler import ir

from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram
from mlir_sched.tasks.worker.extraction import apply_sequence
from mlir_sched.transform_scripts.script.building import new_library

T = TypeVar("T")


@dataclass(eq=False)
class StagedProgram(WalkedProgram):
    """A program with what is known of rewrites of it.

    Each rewrite is asked and applied once, so that plans that begin alike share their beginning.
    """

    _found: dict[ProgramRewrite, Any] = field(default_factory=dict)
    _required: dict[ProgramRewrite, tuple[ProgramRewrite, ...]] = field(default_factory=dict)
    _libraries: dict[ProgramRewrite, tuple[ir.Module, str]] = field(default_factory=dict)
    _after: dict[ProgramRewrite, StagedProgram] = field(default_factory=dict)

    def found(self, rewrite: ProgramRewrite) -> Any:
        """Return what a rewrite finds in the program; see :meth:`ProgramRewrite.finds`."""
        return _once(self._found, rewrite, lambda: rewrite.finds(self))

    def applies(self, rewrite: ProgramRewrite) -> bool:
        """Say whether a rewrite finds something in the program."""
        return bool(self.found(rewrite))

    def requires(self, rewrite: ProgramRewrite) -> tuple[ProgramRewrite, ...]:
        """Return what a rewrite requires in front of it."""
        return _once(self._required, rewrite, lambda: rewrite.requires(self))

    def append(self, library: ir.Module, rewrite: ProgramRewrite) -> str:
        """Append a rewrite that applies to a transform library; see :meth:`ProgramRewrite.append`."""
        made, symbol = self._library(rewrite)
        for op in made.body.operations:
            op.operation.clone(ir.InsertionPoint(library.body))
        return symbol

    def after(self, rewrite: ProgramRewrite) -> StagedProgram:
        """Return the program after a single rewrite that applies, whose requirements the program has met."""

        def made() -> StagedProgram:
            result = self.module.operation.clone()
            apply_sequence(*self._library(rewrite), result)
            return StagedProgram(result, self.device)

        return _once(self._after, rewrite, made)

    def _library(self, rewrite: ProgramRewrite) -> tuple[ir.Module, str]:
        """Return a library with a rewrite alone, and the symbol of its sequence."""

        def made() -> tuple[ir.Module, str]:
            library = new_library()
            return library, rewrite.append(library, self, self.found(rewrite))

        return _once(self._libraries, rewrite, made)


def _once(known: dict[ProgramRewrite, T], rewrite: ProgramRewrite, find: Callable[[], T]) -> T:
    """Return what is known about a rewrite, or else find it."""
    if rewrite not in known:
        known[rewrite] = find()
    return known[rewrite]
