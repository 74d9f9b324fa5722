"""Stands for the compiler of candidates in a worker: one of IREE's passes fails on every dispatch."""

from __future__ import annotations

from typing import Any
from unittest import mock

from mlir_sched.compiler.compile_result import CompileResult
from mlir_sched.compiler.worker import candidate
from mlir_sched.errors import CompilerError


def compile_candidate(*arguments: Any) -> CompileResult:
    with mock.patch.object(candidate, "prepared_module", side_effect=CompilerError("error: a pass fails")):
        return candidate.compile_candidate(*arguments)
