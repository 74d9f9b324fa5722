"""Stands for the extraction in a worker: one dispatch crashes the compiler, another meets a mistake of ours."""

from __future__ import annotations

import os
from typing import Any
from unittest import mock

from mlir_sched.tasks.model import Model
from mlir_sched.tasks.worker import extraction, task_reader
from mlir_sched.tasks.worker.task_program import build_task_program

CRASHES, RAISES = "softmax", "reduction_8x4"


def extract_model(*arguments: Any) -> Model:
    def broken(module: Any, dispatch: Any) -> Any:
        name = str(dispatch.attributes["entry_points"])
        if CRASHES in name:
            os.abort()
        if RAISES in name:
            raise KeyError("a mistake")
        return build_task_program(module, dispatch)

    with mock.patch.object(task_reader, "build_task_program", broken):
        return extraction.extract_model(*arguments)
