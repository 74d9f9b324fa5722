"""A program as rewrites see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from iree.compiler import ir

from mlir_sched.compiler.operations import symbol_of, walk

T = TypeVar("T")
CPU, GPU = "cpu", "gpu"
"""Kinds of devices, as of ``TargetKind.rewrites``."""


@dataclass(eq=False)
class WalkedProgram:
    """A program that is walked once for all rewrites that look for something in it.

    Attributes:
        module: The program as it enters IREE's preprocessing phase (after the ``abi`` phase,
            ``iree-compile --compile-to=abi``), or as rewrites leave it; it stays as it is.
        device: The kind of device that it is made for.
    """

    module: ir.Module
    device: str = CPU
    _known: dict[Callable[[WalkedProgram], Any], Any] = field(default_factory=dict, init=False)

    @cached_property
    def ops(self) -> Sequence[Any]:
        """All ops, in pre-order."""
        return tuple(walk(self.module.operation))

    @cached_property
    def constants(self) -> frozenset[str]:
        """The symbols of the globals that are never written."""
        found = (op for op in self.ops if op.name == "util.global" and "is_mutable" not in op.attributes)
        return frozenset(map(symbol_of, found))

    def known(self, find: Callable[[WalkedProgram], T]) -> T:
        """Return what a function finds in the program, which is asked once for all rewrites; it stays as it is."""
        if find not in self._known:
            self._known[find] = find(self)
        found: T = self._known[find]
        return found
