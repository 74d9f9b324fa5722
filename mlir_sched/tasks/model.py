"""A model file and its tasks: one per distinct dispatch, with its calls per run and a stand-alone program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mlir_sched.compiler.flags import is_utf8, task_flags
from mlir_sched.compiler.reasons import reason
from mlir_sched.compiler.worker_process import WorkerLimits, run_isolated
from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec
from mlir_sched.processes.child import ChildCrashError
from mlir_sched.processes.limits import ChildError, ChildMemoryError, ChildTimeoutError
from mlir_sched.processes.memory import child_memory_bytes
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.targets.target import Target
from mlir_sched.tasks.shown import Inside
from mlir_sched.tasks.task import Task
from mlir_sched.tensors.parameters import ParameterFile, require_scopes
from mlir_sched.tensors.values import FunctionValues

TASK_FLAGS = ("--iree-flow-inline-constants-max-byte-length=0",)
"""Flags under which a program is split into tasks, and compiled once its dispatches have scripts.

With them, constants of a few numbers (a convolution's bias, say) are operands of dispatches and no part of their code:
dispatches that differ only in constants are one task, and no dispatch refers to a resource of the program's file, which
the task's stand-alone program would lack. Without the flag IREE inlines constants of up to 256 bytes
(RegionOpUtils.cpp).
"""

EXTRACTION_LIMITS = WorkerLimits(timeout_s=1800.0, memory_bytes=child_memory_bytes())
"""Limits of extraction: bringing a large model to the flow phase takes minutes, and memory proportional to its
weights."""

_JOB = "mlir_sched.tasks.worker.extraction:extract_model"


@dataclass(frozen=True)
class EntryPoint:
    """A public function of the model.

    Attributes:
        name: Its symbol.
        inputs, outputs: Tensors it takes and returns; a scalar has the shape ``()``.
        integer_ranges: Smallest and largest integer that each input may hold, by position; None for an input that may
            hold any integer or holds none. Indices have to stay inside the tables that they read.
        notes: Which inputs hold few of the integers that they could hold, and why, one sentence each.
        reads, writes: Globals of the program's state that it reads and changes: its calls depend on those before.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    integer_ranges: tuple[tuple[int, int] | None, ...] = ()
    notes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    @property
    def uses_state(self) -> bool:
        """Whether its results depend on the calls before, or the results of later calls on it."""
        return bool(self.reads or self.writes)


@dataclass(frozen=True)
class Model:
    """A program with its tasks.

    Attributes:
        path: The file, as given.
        entries: The program's public functions that are run.
        tasks: The distinct dispatches of these functions in the order of their first call, without dispatches that run
            only once, when the program is loaded.
        flags: Compiler flags of the program (target flags first); ``Task.flags`` has those of its tasks.
        notes: Figures that could not be determined exactly, one sentence each.
        parameters: Files that the program reads weights from.
        scopes: Scopes of the parameters that the program reads, sorted.
        internal_errors: Tracebacks of mlir-sched's own errors, each of which cost one dispatch.
        not_run: Why the other public functions are neither run nor timed, by name.
        values: What the user gives for the inputs and outputs of functions that are run.
        untuned_wrong: How the results of the untuned code differ from those that the user gives, by function; what such
            a function computes on other inputs is no reference.
        inside: What is verified by results of dispatches, as the program's own results say nothing; None for nothing.
        stateful: The public functions that read or change the program's state and can be called, run or not.
        weight_bytes: Bytes of constants, in files or in the program, that its functions read.
    """

    path: str
    entries: tuple[EntryPoint, ...]
    tasks: tuple[Task, ...]
    flags: tuple[str, ...]
    notes: tuple[str, ...] = ()
    parameters: tuple[ParameterFile, ...] = ()
    scopes: tuple[str, ...] = ()
    internal_errors: tuple[str, ...] = ()
    not_run: Mapping[str, str] = field(default_factory=dict)
    values: tuple[FunctionValues, ...] = ()
    untuned_wrong: Mapping[str, str] = field(default_factory=dict)
    stateful: tuple[EntryPoint, ...] = ()
    inside: Inside | None = None
    weight_bytes: int = 0

    def given(self, function: str) -> FunctionValues | None:
        """Return what the user gives for a function, or None."""
        return next((values for values in self.values if values.function == function), None)

    def judged_as(self, other: Model) -> Model:
        """Return this variant of a program with the values that another variant is checked with, and where."""
        return replace(self, values=other.values, untuned_wrong=other.untuned_wrong, inside=other.inside)

    @property
    def task_flags(self) -> tuple[str, ...]:
        """Compiler flags of every task."""
        return task_flags(self.flags)


def extract(
    model_path: str | Path,
    target: Target,
    extra_flags: tuple[str, ...] = (),
    library: str = "",
    *,
    parameters: tuple[ParameterFile, ...] = (),
    not_run: Mapping[str, str] | None = None,
    known: Sequence[Task] = (),
) -> Model:
    """Return the model's tasks for a target.

    Args:
        model_path: A program in any form that ``iree-compile`` reads.
        library: Text of a transform library that rewrites the program before its dispatches are formed; empty for none.
        not_run: Public functions to leave out, each with the reason; others are left out where their tensors
            can neither be made nor compared, unless none remains then.
        known: Tasks of other programs for this target: equal tasks of this program are not read again.

    Raises:
        UserError: The file is missing, is not a program, is rejected by IREE, has dynamic shapes, or reads parameters
            for which no file is given.
        JobError: mlir-sched itself has an error; the message holds the traceback.
    """
    path = require_program(model_path)
    flags = (*target.flags, *extra_flags)
    try:
        on_cpu, by_key = target.driver.on_host, {task.key: task for task in known}
        model = _extract(flags, str(path), flags, target.key, on_cpu, library, dict(not_run or {}), by_key)
    except ChildTimeoutError as error:
        raise UserError(f"{path}: the compiler took too long to form the dispatches: {error}") from None
    except ChildError as error:
        raise UserError(f"{path}: IREE cannot compile this program: {error}") from None
    require_scopes(str(path), model.scopes, parameters)
    return replace(model, parameters=parameters)


def _extract(worker_flags: tuple[str, ...], *arguments: Any) -> Model:
    """Run the extraction in a worker; after each dispatch that crashes the compiler, run it again without that one."""
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
        UserError: The file does not exist, is not a regular file, is empty, or has a path that is not UTF-8.
    """
    path = Path(model_path)
    if not path.is_file():
        raise UserError(f"{path}: not a file" if path.exists() else f"{path}: no such file")
    if path.stat().st_size == 0:
        raise UserError(f"{path}: the file is empty")
    if not is_utf8(str(path.absolute())):
        raise UserError(f"{path}: the path has bytes that are not UTF-8, which IREE does not read; rename the file")
    return path
