"""Stands for the rewrites in a worker: one fails in some way, beside one that applies."""

from __future__ import annotations

import os
from unittest import mock

from iree.compiler import ir
from plans import Named

from mlir_sched.errors import CompilerError
from mlir_sched.program.rewrites import REWRITES
from mlir_sched.program.rewrites.walked_program import WalkedProgram
from mlir_sched.program.worker import rewriting


class Raising(Named):
    """A rewrite with a mistake."""

    def append(self, library: ir.Module, program: WalkedProgram, found: bool) -> str:
        raise KeyError("a mistake")


class Refused(Named):
    """A rewrite that runs a pass of the compiler's that fails."""

    def append(self, library: ir.Module, program: WalkedProgram, found: bool) -> str:
        raise CompilerError("m.mlir:1:2: error: 'linalg.add' op is bad")


class Crashing(Named):
    """A rewrite that the compiler does not survive."""

    def finds(self, program: WalkedProgram) -> bool:
        os.abort()


def with_a_mistake(path: str, kind: str, cores: int) -> rewriting.RewrittenPlans:
    with mock.patch.dict(REWRITES, {kind: lambda _: ((Raising("raising"),), (Named("applying"),))}):
        return rewriting.rewritten_plans(path, kind, cores)


def with_a_refusal(path: str, kind: str, cores: int) -> rewriting.RewrittenPlans:
    with mock.patch.dict(REWRITES, {kind: lambda _: ((Refused("refused"),), (Named("applying"),))}):
        return rewriting.rewritten_plans(path, kind, cores)


def refused_whole(path: str, kind: str, cores: int) -> rewriting.RewrittenPlans:
    raise CompilerError("m.mlir:1:2: error: 'linalg.add' op is bad")


def with_a_crash(path: str, kind: str, cores: int) -> rewriting.RewrittenPlans:
    with mock.patch.dict(REWRITES, {kind: lambda _: ((Crashing("crashing"),), (Named("applying"),))}):
        return rewriting.rewritten_plans(path, kind, cores)


def lost(path: str, kind: str, cores: int) -> rewriting.RewrittenPlans:
    raise ZeroDivisionError("a mistake")
