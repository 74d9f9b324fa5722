"""From a model file to its tasks: one per distinct dispatch, with how often it runs and a program of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mlir_sched.compiler.workers import WorkerCrashError, WorkerLimits, WorkerTimeoutError, run_isolated
from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec
from mlir_sched.processes.memory import child_memory_bytes
from mlir_sched.target import Target
from mlir_sched.task import Task

EXTRACTION_LIMITS = WorkerLimits(timeout_s=1800.0, memory_bytes=child_memory_bytes())
"""Large models take minutes to bring to the flow phase, and memory in proportion to their weights."""


@dataclass(frozen=True)
class EntryPoint:
    """A public function of the model.

    Attributes:
        name: Its symbol.
        inputs, outputs: Tensors it takes and returns; a scalar has the shape ``()``.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class Model:
    """A program with its tasks.

    Attributes:
        path: The file, as given.
        entries: Its public functions.
        tasks: Its distinct dispatches in the order of their first call; those that run once at load are left out.
        flags: Compiler flags of every task (target flags first).
        notes: What could not be known exactly, one sentence each.
    """

    path: str
    entries: tuple[EntryPoint, ...]
    tasks: tuple[Task, ...]
    flags: tuple[str, ...]
    notes: tuple[str, ...] = ()


def extract(model_path: str | Path, target: Target, extra_flags: tuple[str, ...] = (), library: str = "") -> Model:
    """Return the model's tasks for a target.

    Args:
        model_path: A program in any form that ``iree-compile`` reads.
        target: What to compile for.
        extra_flags: Further compiler flags.
        library: A transform library that rewrites the program before its dispatches are formed; none when empty.

    Raises:
        UserError: The file is missing, is not a program, is rejected by IREE, has dynamic shapes or no dispatch.
        JobError: A mistake of ours, with its traceback.
    """
    path = require_program(model_path)
    flags = (*target.flags, *extra_flags)
    job = "mlir_sched.tasks.extraction:extract_model"
    try:
        model: Model = run_isolated(flags, job, str(path), flags, target.key, library, limits=EXTRACTION_LIMITS)
    except WorkerTimeoutError as error:
        raise UserError(f"{path}: the compiler did not get to its dispatches: {error}") from None
    except WorkerCrashError as error:
        raise UserError(f"{path}: IREE cannot compile this program: {error}") from None
    return model


def require_program(model_path: str | Path) -> Path:
    """Return the path of a model that exists and is not empty.

    Raises:
        UserError: There is no such file, or nothing in it.
    """
    path = Path(model_path)
    if not path.is_file():
        raise UserError(f"{path}: not a file" if path.exists() else f"{path}: no such file")
    if path.stat().st_size == 0:
        raise UserError(f"{path}: the file is empty")
    return path
