"""The worker's side of ``tasks/model.py``: brings a model to the flow phase and takes its dispatches out."""

from __future__ import annotations

import hashlib
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects.transform import interpreter

from mlir_sched.compiler.library_flags import PROGRAM_ENTRY
from mlir_sched.compiler.operations import first_function, symbol_of
from mlir_sched.compiler.program_flags import task_flags
from mlir_sched.compiler.worker.preconfiguration import run_preconfiguration
from mlir_sched.compiler.worker.session import ABI, FLOW, SOURCES, START, Compilation, CompilerError, context
from mlir_sched.errors import UserError
from mlir_sched.payload import Dispatch
from mlir_sched.reasons import reason
from mlir_sched.tasks.model import Model
from mlir_sched.tasks.task import Task
from mlir_sched.tasks.worker.analysis import NotTunableError, analyse
from mlir_sched.tasks.worker.call_counts import DispatchCall, count_calls
from mlir_sched.tasks.worker.constants import reuse_bytes
from mlir_sched.tasks.worker.entry_points import entries_to_run, entry_points
from mlir_sched.tasks.worker.task_program import TaskProgram, build_task_program

_PARAMETER = re.compile(r'#(?:flow|stream)\.parameter\.named<(?:"([^"]*)"::)?')


def extract_model(
    path: str,
    flags: tuple[str, ...],
    target_key: str,
    on_cpu: bool,
    library: str,
    not_run: Mapping[str, str],
    known: Mapping[str, Task],
    at_work: str,
    skipped: Mapping[str, str],
) -> Model:
    """Return the model of a file; see ``tasks.extract``.

    Args:
        path: The model's file.
        flags: Compiler flags.
        target_key: Key of the target.
        on_cpu: Whether the target is this machine's CPU; only there constants are timed as cold as in the model.
        library: Text of a transform library that rewrites the program; empty for none.
        not_run: Public functions to leave out, each with the reason.
        known: Tasks of other programs, by key: an equal task is not read again.
        at_work: A file into which each dispatch's name is written first, to name the culprit of a crash.
        skipped: Dispatches to leave alone, each with the reason.
    """
    errors: list[str] = []
    with context(), ir.Location.unknown(), Compilation() as compilation:
        module, reused = flow_module(path, compilation, library)
        entries, left_out = entries_to_run(entry_points(path, module), not_run)
        calls, notes = count_calls(module, [entry.name for entry in entries])
        if not calls:
            raise UserError(f"{path}: the program has no dispatch to tune: IREE compiles it to copies or constants")

        programs: dict[str, TaskProgram] = {}

        def called() -> Iterator[Task]:
            for call in calls:
                Path(at_work).write_text(call.entry)
                yield _called_task(module, call, task_flags(flags), target_key, skipped, programs, errors)

        def tasks() -> Iterator[Task]:
            for called_task in merge_equal(called()):
                task = with_reuse(called_task, reused if on_cpu else 0)
                Path(at_work).write_text(task.name)
                if task.key in known:
                    yield _equal_task(task, known[task.key])
                else:
                    yield _read_task(task, programs.get(called_task.key), errors)

        found = tuple(tasks())
        Path(at_work).write_text("")
        scopes = parameter_scopes(module)
    internal = tuple(errors)
    return Model(path, entries, found, flags, notes, scopes=scopes, internal_errors=internal, not_run=left_out)


def parameter_scopes(module: Any) -> tuple[str, ...]:
    """Return the scopes of the parameters that a program reads from files, sorted."""
    names = [op.operation for op in module.regions[0].blocks[0] if op.operation.name == "util.global"]
    values = (str(op.attributes["initial_value"]) for op in names if "initial_value" in op.attributes)
    return tuple(sorted({found.group(1) or "" for value in values if (found := _PARAMETER.match(value))}))


def flow_module(path: str, compilation: Compilation, library: str = "") -> tuple[Any, int]:
    """Return the program at the flow phase, and its :func:`~mlir_sched.tasks.worker.constants.reuse_bytes`.

    Args:
        path: The program's file.
        compilation: The compilation that the program is loaded into.
        library: Text of a transform library that rewrites the program in the place of ``iree-compile``'s
            preprocessing; empty for none.

    Raises:
        UserError: The compiler rejects the program; the message is its first error, which names file and line.
    """
    try:
        compilation.load_file(path)
        compilation.run(START, ABI)
        module = compilation.module()
        reused = reuse_bytes(module)
        if library:
            apply_to_program(library, module)
        compilation.load(module)
        compilation.run(ABI, FLOW)
    except CompilerError as error:
        raise UserError(str(error).splitlines()[0]) from None
    return module, reused


def apply_to_program(library: str, program: Any) -> None:
    """Apply the program entry of a transform library, as the interpreter pass does.

    Raises:
        CompilerError: The library does not parse, or its program entry fails.
    """
    try:
        script = ir.Module.parse(library)
        (entry,) = [op for op in script.body if symbol_of(op.operation) == PROGRAM_ENTRY]
        interpreter.apply_named_sequence(program.operation, entry, script)
    except (ValueError, ir.MLIRError) as error:
        raise CompilerError(f"the rewrite of the program fails: {error}") from None


def merge_equal(tasks: Iterator[Task]) -> tuple[Task, ...]:
    """Return the tasks, those of equal key merged into one with the sum of their weights and the constants of all."""
    merged: dict[str, Task] = {}
    for task in tasks:
        seen = merged.get(task.key)
        if seen is None:
            merged[task.key] = task
        else:
            merged[task.key] = replace(
                seen,
                weight=seen.weight + task.weight,
                constants=tuple(sorted({*seen.constants} & {*task.constants})),
                may_not_run=seen.may_not_run and task.may_not_run,
            )
    return tuple(merged.values())


def with_reuse(task: Task, reused: int) -> Task:
    """Return a task that knows how cold its constants are, under a key that says so."""
    if not (reused and task.constants):
        return replace(task, constants=())
    key = _digest(task.key, str(task.constants), str(reused))
    return replace(task, key=key, reuse_bytes=reused)


def _called_task(
    module: Any,
    call: DispatchCall,
    flags: tuple[str, ...],
    target_key: str,
    skipped: Mapping[str, str],
    programs: dict[str, TaskProgram],
    errors: list[str],
) -> Task:
    """Return the task of some calls, without its source; its program, if there is one, is put into ``programs``."""
    task = Task(
        key=_key(call.text, flags, target_key),
        name=call.entry,
        weight=call.weight,
        source="",
        inputs=(),
        outputs=(),
        dispatch=None,
        not_tunable="",
        flags=flags,
        constants=tuple(sorted(call.constants)),
        may_not_run=call.may_not_run,
    )
    if call.entry in skipped:
        return replace(task, not_tunable=skipped[call.entry])
    try:
        program = build_task_program(module, call.op)
    except NotTunableError as error:
        return replace(task, not_tunable=reason(str(error)))
    except Exception as error:
        return _broken_task(task, error, errors)
    key = _key(program.text, flags, target_key)
    programs[key] = program
    return replace(task, key=key, inputs=program.inputs, outputs=program.outputs)


def _equal_task(task: Task, known: Task) -> Task:
    """Return a task with what is known of one of equal key."""
    return replace(task, source=known.source, dispatch=known.dispatch, not_tunable=known.not_tunable)


def _read_task(task: Task, program: TaskProgram | None, errors: list[str]) -> Task:
    """Return a task with its source and its dispatch; one without a program stays as it is."""
    if program is None:
        return task
    try:
        source, dispatch = _compile_to_sources(program)
    except NotTunableError as error:
        return replace(task, not_tunable=reason(str(error)))
    except CompilerError as error:
        return replace(task, not_tunable=f"IREE does not compile it alone: {reason(str(error))}")
    except Exception as error:
        return _broken_task(task, error, errors)
    if isinstance(dispatch, str):
        return replace(task, source=source, not_tunable=dispatch)
    return replace(task, source=source, dispatch=dispatch)


def _broken_task(task: Task, error: Exception, errors: list[str]) -> Task:
    """Return a task that an error of mlir-sched's own keeps from being tuned; its traceback is put into ``errors``."""
    errors.append(f"{task.name}: {''.join(traceback.format_exception(error))}")
    return replace(task, not_tunable=f"internal error: {reason(f'{type(error).__name__}: {error}')}")


def _compile_to_sources(program: TaskProgram) -> tuple[str, Dispatch | str]:
    """Return the program at the executable-sources phase, and its dispatch or why the dispatch cannot be tuned."""
    module = ir.Module.parse(program.text)
    with Compilation() as compilation:
        compilation.load(module.operation)
        compilation.run(FLOW, SOURCES)
        source = str(module)
        return source, dispatch_of(module)


def dispatch_of(module: Any) -> Dispatch | str:
    """Return the dispatch of a program at executable-sources, or why it cannot be tuned (changes the module)."""
    function = first_function(module.operation)
    if function is None:
        return "it has no code of its own"
    run_preconfiguration(function)
    try:
        return analyse(function)
    except NotTunableError as error:
        return reason(str(error))


def _key(text: str, flags: tuple[str, ...], target_key: str) -> str:
    return _digest(text, target_key, *flags)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
