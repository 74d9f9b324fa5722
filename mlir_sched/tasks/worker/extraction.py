"""The worker's side of ``tasks/model.py``: brings a model to the flow phase and takes its dispatches out."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects.transform import interpreter

from mlir_sched.compiler.flags import PROGRAM_ENTRY, task_flags
from mlir_sched.compiler.operations import symbol_of
from mlir_sched.compiler.reasons import reason
from mlir_sched.compiler.version import SUPPORTED
from mlir_sched.compiler.worker.session import ABI, FLOW, START, Compilation, context
from mlir_sched.errors import CompilerError, ScriptError, UserError
from mlir_sched.tasks.model import Model
from mlir_sched.tasks.task import Task
from mlir_sched.tasks.worker.call_counts import count_calls
from mlir_sched.tasks.worker.constants import reuse_bytes, weight_bytes
from mlir_sched.tasks.worker.entry_points import entries_to_run, entry_points, stateful
from mlir_sched.tasks.worker.task_reader import TaskReader

_PASS_FAILED = "pass pipeline failed"
"""What the transform interpreter says of a pass that fails (``ApplyRegisteredPassOp`` of MLIR)."""
_PARAMETER = re.compile(r'#(?:flow|stream)\.parameter\.named<(?:"([^"]*)"::)?')
_FORMS = {
    "tosa": "TOSA 1.0, in which shapes, shifts, paddings and zero points are operands",
    "stablehlo": "the StableHLO of its own time",
    "torch": "the torch dialect of its own time, as iree-turbine and iree-import-onnx of the same version write it",
}
"""What IREE reads, by dialect."""
_OTHER_FORM = re.compile(
    rf"'({'|'.join(_FORMS)})\.\w+' (?:op )?"
    r"(?:is unknown|expected|requires attribute|requires \w+ operand|found in dialect|attribute '\w+' failed)"
)
"""Messages on an op that has other operands or attributes than its text, or no longer exists. IREE says of an op with
operands of wrong shapes or types that an operand \"must be\" something, or that types are incompatible."""


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
        on_cpu: Whether the target is this machine's CPU; only there constants are timed as cold as in the model.
        known: Tasks of other programs, by key: an equal task is not read again.
        at_work: A file into which each dispatch's name is written first, to name the culprit of a crash.
        skipped: Dispatches to leave alone, each with the reason.
    """
    with context(), ir.Location.unknown(), Compilation() as compilation:
        module, reused = flow_module(path, compilation, library)
        public = entry_points(path, module)
        entries, left_out = entries_to_run(public, not_run)
        calls, notes = count_calls(module, [entry.name for entry in entries])
        if not calls:
            notes = (*notes, "the program has no dispatch: IREE compiles it to copies or constants")
        reader = TaskReader(
            task_flags(flags), target_key, reused if on_cpu else 0, known, skipped=skipped, at_work=Path(at_work)
        )
        tasks, scopes, weights = reader.tasks(module, calls), parameter_scopes(module), weight_bytes(module)
    errors = tuple(reader.errors)
    notes = (*notes, *(note for entry in entries for note in entry.notes))
    return Model(
        path, entries, tasks, flags, notes, scopes=scopes, internal_errors=errors, not_run=left_out,
        stateful=stateful(public), weight_bytes=weights,
    )  # fmt: skip


def parameter_scopes(module: Any) -> tuple[str, ...]:
    """Return the scopes of the parameters that a program reads from files, sorted."""
    names = [op.operation for op in module.regions[0].blocks[0] if op.operation.name == "util.global"]
    values = (str(op.attributes["initial_value"]) for op in names if "initial_value" in op.attributes)
    return tuple(sorted({found.group(1) or "" for value in values if (found := _PARAMETER.match(value))}))


def flow_module(path: str, compilation: Compilation, library: str = "") -> tuple[Any, int]:
    """Return the program at the flow phase, and its :func:`~mlir_sched.tasks.worker.constants.reuse_bytes`.

    Args:
        library: Text of a transform library that rewrites the program in the place of ``iree-compile``'s
            preprocessing; empty for none.

    Raises:
        UserError: The compiler rejects the program; the message is its first error, which names file and line.
    """
    try:
        compilation.load_file(path)
    except CompilerError as error:
        raise UserError(with_version_hint(str(error).splitlines()[0])) from None
    try:
        compilation.run(START, ABI)
        module = compilation.module()
        reused = reuse_bytes(module)
        if library:
            apply_to_program(library, module)
        compilation.load(module)
        compilation.run(ABI, FLOW)
    except (CompilerError, ScriptError) as error:
        raise UserError(str(error).splitlines()[0]) from None
    return module, reused


def apply_to_program(library: str, program: Any) -> None:
    """Apply the program entry of a transform library, as the interpreter pass does.

    Raises:
        CompilerError: One of IREE's passes that the library runs fails.
        ScriptError: The library does not parse, or its program entry does not apply.
    """
    with _failure_of_rewrite():
        apply_sequence(ir.Module.parse(library), PROGRAM_ENTRY, program)


def apply_sequence(library: ir.Module, symbol: str, program: Any) -> None:
    """Apply a named sequence of a transform library to a program; the library stays as it is.

    Raises:
        CompilerError: One of IREE's passes that the library runs fails.
        ScriptError: The sequence does not apply, or is not the only one of its name.
    """
    with _failure_of_rewrite():
        (sequence,) = [op for op in library.body if symbol_of(op.operation) == symbol]
        interpreter.apply_named_sequence(program.operation, sequence, library)


@contextmanager
def _failure_of_rewrite() -> Iterator[None]:
    try:
        yield
    except (ValueError, ir.MLIRError) as error:
        text = f"the rewrite of the program fails: {reason(str(error))}\n{error}"
        raise (CompilerError if _PASS_FAILED in text else ScriptError)(text) from None


def with_version_hint(message: str) -> str:
    """Return a message of IREE's on a program that it cannot read, with the cause where that is the version."""
    found = _OTHER_FORM.search(message)
    if found is None:
        return message
    dialect = found[1]
    return (
        f"{message}; the text may be of another version of {dialect}: IREE {SUPPORTED} reads {_FORMS[dialect]}; "
        "export the model again in this form"
    )
