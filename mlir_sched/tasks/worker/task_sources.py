"""Programs of tasks at the executable-sources phase, compiled together.

IREE's passes up to this phase take 0.1 s for a single dispatch, almost all of it whatever the dispatch is: each of a
hundred passes collects its patterns anew (IREE 3.13). The tasks of a model are therefore put into one program, which
runs through the passes once, and is taken apart again. The passes that bring dispatches to the state that scripts meet
run once, too. What the passes make of a dispatch does not depend on the other dispatches of the program
(``tests/tasks/test_exported_models.py`` compares).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.chain import TASK
from mlir_sched.compiler.operations import first_function, symbol_of, walk
from mlir_sched.compiler.worker.preconfiguration import run_preconfigurations
from mlir_sched.compiler.worker.session import FLOW, SOURCES, Compilation
from mlir_sched.errors import CompilerError
from mlir_sched.tasks.worker.task_program import SYMBOL

_CALLED = "entry_points"
"""The attribute of a dispatch that names what is called, as (executable, ..., export)."""


@dataclass(frozen=True)
class TaskSource:
    """A task's program at the executable-sources phase.

    Attributes:
        text: The program.
        function: Its dispatch as a script meets it; None for a dispatch without code of its own.
        module: The module that the function is in, which has to stay.
    """

    text: str
    function: Any
    module: Any


def compiled_alone(text: str) -> TaskSource:
    """Return one task's program.

    Raises:
        CompilerError: The compiler rejects the program.
    """
    module = ir.Module.parse(text)
    _run(module)
    source = str(module)
    run_preconfigurations(module)
    return TaskSource(source, first_function(module.operation), module)


def compiled_together(texts: Sequence[str]) -> list[TaskSource]:
    """Return programs of tasks of one model, the same as :func:`compiled_alone` does.

    Args:
        texts: The programs at the flow phase, at least one.

    Raises:
        CompilerError: The compiler rejects one of the programs, or makes something that belongs to none of them.
    """
    programs = [ir.Module.parse(text) for text in texts]
    whole = _with_attributes_of(programs[0])
    with ir.InsertionPoint(whole.body):
        for number, program in enumerate(programs):
            for op in program.body:
                if number == 0 or not _is_shared(op.operation):
                    _rename(op.operation.clone(), SYMBOL, f"{SYMBOL}_{number}", TASK, f"{TASK}_{number}")
    _run(whole)
    sources = [str(_taken_out(whole, number)) for number in range(len(programs))]
    run_preconfigurations(whole)
    named = {symbol_of(op.operation): op.operation for op in whole.body if not _is_shared(op.operation)}
    return [TaskSource(text, first_function(named[f"{SYMBOL}_{n}"]), whole) for n, text in enumerate(sources)]


def _run(module: Any) -> None:
    """Run IREE's passes; their result is verified by the passes in front of scripts, which follow."""
    with Compilation(verifies=False) as compilation:
        compilation.load(module.operation)
        compilation.run(FLOW, SOURCES)


def _taken_out(whole: Any, number: int) -> Any:
    """Return the program of one task out of a program of several."""
    executable, function = f"{SYMBOL}_{number}", f"{TASK}_{number}"
    program = _with_attributes_of(whole)
    with ir.InsertionPoint(program.body):
        for op in (op.operation for op in whole.body):
            if _is_shared(op) or symbol_of(op) in (executable, function):
                _rename(op.clone(), executable, SYMBOL, function, TASK)
    if len([op for op in program.body if not _is_shared(op.operation)]) != 2:
        raise CompilerError(f"IREE compiles the task {number} of several to other parts than one alone")
    return program


def _with_attributes_of(module: Any) -> Any:
    """Return an empty module with the attributes of another one."""
    empty = ir.Module.create()
    for name in module.operation.attributes:
        empty.operation.attributes[name] = module.operation.attributes[name]
    return empty


def _is_shared(op: Any) -> bool:
    """Say whether all tasks of a program have an op at module level: a device."""
    return str(op.name) == "util.global"


def _rename(op: Any, executable: str, other_executable: str, function: str, other_function: str) -> None:
    """Give an executable or a function at module level, and the calls in it, another name."""
    names = {executable: other_executable, function: other_function}
    if (name := names.get(symbol_of(op))) is not None:
        op.attributes["sym_name"] = ir.StringAttr.get(name)
    for inner in walk(op):
        if _CALLED in inner.attributes:
            called = [ir.SymbolRefAttr(each).value for each in inner.attributes[_CALLED]]
            renamed = [ir.SymbolRefAttr.get([names.get(first, first), *rest]) for first, *rest in called]
            inner.attributes[_CALLED] = ir.ArrayAttr.get(renamed)
