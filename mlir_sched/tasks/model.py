"""From a model file to its tasks: one per distinct dispatch, with how often it runs and a program of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlir_sched.errors import UserError
from mlir_sched.parameters import ParameterFile, require_scopes
from mlir_sched.payload import TensorSpec
from mlir_sched.processes.child import ChildCrashError
from mlir_sched.processes.limits import ChildError, ChildMemoryError, ChildTimeoutError
from mlir_sched.processes.memory import child_memory_bytes
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.processes.workers import WorkerLimits, run_isolated
from mlir_sched.reasons import reason
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task

TASK_FLAGS = ("--iree-flow-inline-constants-max-byte-length=0",)
"""Flags under which a program is taken apart, and compiled once its dispatches have scripts.

Constants of a few numbers (a convolution's bias, say) are operands of dispatches and no part of their code: dispatches
that differ in constants only are one task, and no dispatch holds a resource of the program's file, which a program of
its own would lack. Without the flag IREE inlines constants of up to 256 bytes (RegionOpUtils.cpp).
"""

EXTRACTION_LIMITS = WorkerLimits(timeout_s=1800.0, memory_bytes=child_memory_bytes())
"""Large models take minutes to bring to the flow phase, and memory in proportion to their weights."""

_JOB = "mlir_sched.tasks.extraction:extract_model"


@dataclass(frozen=True)
class EntryPoint:
    """A public function of the model.

    Attributes:
        name: Its symbol.
        inputs, outputs: Tensors it takes and returns; a scalar has the shape ``()``.
        integer_ranges: Smallest and largest integer that an input may hold, by position; None where any may be there,
            and for other inputs. Indices have to stay inside the tables that they read.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    integer_ranges: tuple[tuple[int, int] | None, ...] = ()


@dataclass(frozen=True)
class Model:
    """A program with its tasks.

    Attributes:
        path: The file, as given.
        entries: Its public functions.
        tasks: Its distinct dispatches in the order of their first call; those that run once at load are left out.
        flags: Compiler flags of every task (target flags first).
        notes: What could not be known exactly, one sentence each.
        parameters: Files that the program reads weights from.
        scopes: Scopes of the parameters that it reads, sorted.
        internal_errors: Tracebacks of our own mistakes, each of which cost one dispatch.
    """

    path: str
    entries: tuple[EntryPoint, ...]
    tasks: tuple[Task, ...]
    flags: tuple[str, ...]
    notes: tuple[str, ...] = ()
    parameters: tuple[ParameterFile, ...] = ()
    scopes: tuple[str, ...] = ()
    internal_errors: tuple[str, ...] = ()


def extract(
    model_path: str | Path,
    target: Target,
    extra_flags: tuple[str, ...] = (),
    library: str = "",
    *,
    parameters: tuple[ParameterFile, ...] = (),
) -> Model:
    """Return the model's tasks for a target.

    Args:
        model_path: A program in any form that ``iree-compile`` reads.
        target: What to compile for.
        extra_flags: Further compiler flags.
        library: A transform library that rewrites the program before its dispatches are formed; none when empty.
        parameters: Files with the program's weights.

    Raises:
        UserError: The file is missing, is not a program, is rejected by IREE, has dynamic shapes or no dispatch, or
            reads parameters that no file is given for.
        JobError: A mistake of ours, with its traceback.
    """
    path = require_program(model_path)
    flags = (*target.flags, *extra_flags)
    try:
        model = _extract(flags, str(path), flags, target.key, library)
    except ChildTimeoutError as error:
        raise UserError(f"{path}: the compiler did not get to its dispatches: {error}") from None
    except ChildError as error:
        raise UserError(f"{path}: IREE cannot compile this program: {error}") from None
    require_scopes(str(path), model.scopes, parameters)
    return replace(model, parameters=parameters)


def _extract(worker_flags: tuple[str, ...], *arguments: Any) -> Model:
    """Run the extraction in a worker, once more without a dispatch for each that crashes the compiler."""
    crashing: dict[str, str] = {}
    with temporary_folder() as folder:
        at_work = Path(folder) / "dispatch"
        while True:
            at_work.write_text("")
            try:
                model: Model = run_isolated(
                    worker_flags, _JOB, *arguments, str(at_work), crashing, limits=EXTRACTION_LIMITS
                )
                return model
            except (ChildCrashError, ChildMemoryError) as error:
                name = at_work.read_text()
                if not name or name in crashing:
                    raise
                crashing[name] = f"IREE crashes on it: {reason(str(error))}"


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
