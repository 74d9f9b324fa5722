"""Compiles one candidate inside a worker: applies the script to the dispatch's IR, proves its effect, and compiles.

The task's IR is parsed once and brought to the state that scripts meet; every candidate works on a copy. The script
runs in MLIR's transform interpreter, and the same IR then continues through IREE's phases, with a stop after
configuration to check that IREE kept the script's choices.
"""

import re
import time
from functools import lru_cache
from typing import Any

from iree.compiler import ir, passmanager
from iree.compiler.dialects.transform import interpreter

from mlir_sched.attributes import SEQUENCE
from mlir_sched.compiler.binary_hash import program_hash
from mlir_sched.compiler.chain import Chain
from mlir_sched.compiler.code_digest import code_digest
from mlir_sched.compiler.compile_result import CompileResult, Launch, failed
from mlir_sched.compiler.operations import declarations, first_function, symbol_of
from mlir_sched.compiler.worker.applied import codegen_choice, why_not_applied, why_not_honoured
from mlir_sched.compiler.worker.chaining import add_chain
from mlir_sched.compiler.worker.gpu_threads import (
    why_copies_overtake,
    why_threads_collide,
    why_threads_differ,
    why_threads_mix_results,
)
from mlir_sched.compiler.worker.host import EXPORT, counts_of, finished
from mlir_sched.compiler.worker.preconfiguration import prepared_module
from mlir_sched.compiler.worker.session import (
    CONFIGURATIONS,
    SOURCES,
    TARGETS,
    Compilation,
    context,
    set_up,
)
from mlir_sched.errors import CompilerError, FailureClass, MlirSchedError

MESSAGE_CHARACTERS = 600
"""Length that a diagnostic is cut to."""


class _RejectedError(MlirSchedError):
    def __init__(self, kind: FailureClass, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def compile_candidate(
    source: str, script: str | None, flags: tuple[str, ...], chain: Chain | None = None
) -> CompileResult:
    """Return the compiled program of a task with a script applied, or the failure.

    Args:
        script: The script's text; None for IREE's own choices.
        flags: Compiler flags; the first call fixes them for this process.
        chain: A chain that the program gets, to be timed with; None for none.
    """
    start = time.perf_counter()
    set_up(flags)
    try:
        vmfb, code, launch = _compile(source, script, chain)
    except _RejectedError as error:
        return failed(error.kind, _short(str(error)), time.perf_counter() - start)
    return CompileResult(vmfb, None, program_hash(vmfb), time.perf_counter() - start, code, launch)


def _compile(source: str, script: str | None, chain: Chain | None) -> tuple[bytes, str, Launch | None]:
    """Return the program, the digest of its code after configuration, and its launch."""
    with context(), ir.Location.unknown(), Compilation() as compilation:
        module = _prepared(source).operation.clone()
        if script is not None:
            apply_script(script, first_function(module))
        try:
            _strip_locations(module)
        except ir.MLIRError as error:
            raise _RejectedError(FailureClass.SCRIPT_ERROR, f"the script leaves invalid code: {error}") from None
        if chain is not None:
            add_chain(module, chain)
        wanted = codegen_choice(first_function(module))
        try:
            compilation.load(module)
            compilation.run(SOURCES, CONFIGURATIONS)
            if script is not None:
                _require(why_not_honoured(wanted, first_function(module)))
            code = code_digest(first_function(module))
            compilation.run(CONFIGURATIONS, TARGETS)
            launch = _launch_of(module)
            return finished(module, source, chain), code, launch
        except CompilerError as error:
            raise _RejectedError(FailureClass.COMPILE_ERROR, str(error)) from None


def apply_script(text: str, function: Any) -> None:
    """Apply a script to a function of the current context and check that it took effect."""
    module_operation = function.parent.operation
    try:
        script = ir.Module.parse(text)
    except ir.MLIRError as error:
        raise _RejectedError(FailureClass.SCRIPT_ERROR, f"the script does not parse: {error}") from None
    try:
        interpreter.apply_named_sequence(function, _sequence(script), script)
    except (ValueError, ir.MLIRError) as error:
        raise _RejectedError(FailureClass.SCRIPT_ERROR, f"the script does not apply: {error}") from None
    transformed = first_function(module_operation)
    _require("the script removed the function" if transformed is None else why_not_applied(transformed))
    _require(why_threads_differ(script.operation, transformed))
    found = (why_copies_overtake(script.operation), why_threads_collide(transformed))
    if collision := next(filter(None, (*found, why_threads_mix_results(transformed))), ""):
        raise _RejectedError(FailureClass.DATA_RACE, collision)


def _sequence(script: Any) -> Any:
    for op in script.body:
        is_sequence = op.operation.name == "transform.named_sequence"
        if is_sequence and symbol_of(op) == SEQUENCE:
            return op
    raise _RejectedError(FailureClass.SCRIPT_ERROR, f"the script has no transform.named_sequence @{SEQUENCE}")


def _require(complaint: str) -> None:
    if complaint:
        raise _RejectedError(FailureClass.NOT_APPLIED, complaint)


@lru_cache(maxsize=16)
def _prepared(source: str) -> Any:
    """Return the task's program as a script meets it; the last programs are kept."""
    return prepared_module(source)


def _strip_locations(module: Any) -> None:
    """Drop the source locations of program and script: as debug information they would make equal code differ."""
    passmanager.PassManager.parse("any(strip-debuginfo)").run(module)


def _short(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARACTERS else text[:MESSAGE_CHARACTERS] + " ..."


def _launch_of(module: Any) -> Launch | None:
    """Return the launch of a program's only dispatch after translation (``executable-targets``).

    None if the target has no threads, if the number of workgroups depends on values of the program, or if it has
    several dispatches.
    """
    counts = counts_of(module)
    for op in declarations(module):
        if op.name == EXPORT and "workgroup_size" in op.attributes:
            if counts is None:
                return None
            x, y, z = (int(ir.IntegerAttr(size).value) for size in ir.ArrayAttr(op.attributes["workgroup_size"]))
            shared = re.search(r"workgroup_local_memory = (\d+)", str(op).rpartition("<")[2])
            return Launch(counts, (x, y, z), int(shared.group(1)) if shared else 0)
    return None
