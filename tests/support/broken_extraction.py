"""Stands for the extraction in a worker, which meets crashes, refusals and mistakes of ours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from unittest import mock

from mlir_sched.errors import CompilerError
from mlir_sched.tasks.model import Model
from mlir_sched.tasks.worker import extraction, task_reader
from mlir_sched.tasks.worker.task_program import build_task_program

CRASHES, RAISES = "softmax", "reduction_8x4"


def extract_model(*arguments: Any) -> Model:
    """Extract a model one of whose dispatches crashes the compiler, while another meets a mistake of ours."""

    def broken(module: Any, dispatch: Any, numbers: Any) -> Any:
        name = str(dispatch.attributes["entry_points"])
        if CRASHES in name:
            os.abort()
        if RAISES in name:
            raise KeyError("a mistake")
        return build_task_program(module, dispatch, numbers)

    with mock.patch.object(task_reader, "build_task_program", broken):
        return extraction.extract_model(*arguments)


def refused_together(*arguments: Any) -> Model:
    """Extract a model whose dispatches the compiler takes one by one only."""

    def refused(texts: Sequence[str]) -> Any:
        raise CompilerError(f"not {len(texts)} at once")

    with mock.patch.object(task_reader, "compiled_together", refused):
        return extraction.extract_model(*arguments)


def crashing_together(*arguments: Any) -> Model:
    """Extract a model whose dispatches crash the compiler if they are compiled together."""

    def crashing(texts: Sequence[str]) -> Any:
        assert len(texts) > 1
        os.abort()

    with mock.patch.object(task_reader, "compiled_together", crashing):
        return extraction.extract_model(*arguments)
