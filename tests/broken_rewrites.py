"""Stands for the rewrites in a worker: one raises, or crashes the compiler, beside one that applies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from unittest import mock

from iree.compiler import ir

from mlir_sched.library.rewrite_script import RewriteScript
from mlir_sched.program.rewrites import REWRITES, scripts
from mlir_sched.program.rewrites.rewrite import ProgramRewrite

Found = tuple[tuple[RewriteScript, ...], Mapping[str, str], tuple[str, ...]]


class Applying(ProgramRewrite):
    """A rewrite of any program, without ops."""

    name = "applying"

    def applies(self, program: ir.Module) -> bool:
        return True

    def append(self, library: ir.Module, program: ir.Module) -> str:
        return "nothing"


class Raising(Applying):
    """A rewrite with a mistake."""

    name = "raising"

    def append(self, library: ir.Module, program: ir.Module) -> str:
        raise KeyError("a mistake")


class Crashing(Applying):
    """A rewrite that the compiler does not survive."""

    name = "crashing"

    def applies(self, program: ir.Module) -> bool:
        os.abort()


def with_a_mistake(path: str, kind: str, cores: int) -> Found:
    with mock.patch.dict(REWRITES, {kind: lambda _: (Raising(), Applying())}):
        return scripts.rewrite_scripts(path, kind, cores)


def with_a_crash(path: str, kind: str, cores: int) -> Found:
    with mock.patch.dict(REWRITES, {kind: lambda _: (Crashing(), Applying())}):
        return scripts.rewrite_scripts(path, kind, cores)


def lost(path: str, kind: str, cores: int) -> Found:
    raise ZeroDivisionError("a mistake")
