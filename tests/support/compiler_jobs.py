"""Jobs for a compiler's process that show what stays inside it."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

from iree.compiler import ir

from mlir_sched.compiler.compile_result import CompileResult
from mlir_sched.compiler.operations import first_function
from mlir_sched.compiler.worker import host, linking
from mlir_sched.compiler.worker.candidate import compile_candidate
from mlir_sched.compiler.worker.linking import with_binaries
from mlir_sched.compiler.worker.session import Compilation, context


def load_invalid_program() -> None:
    """Load a program whose function has lost its end."""
    with context(), ir.Location.unknown(), Compilation() as compilation:
        module = ir.Module.parse("func.func @f() {\n return\n}").operation
        (end,) = first_function(module).regions[0].blocks[0]
        end.operation.erase()
        compilation.load(module)


def binaries_made(source: str, scripts: Sequence[str | None], flags: tuple[str, ...]) -> list[int]:
    """Compile candidates one after the other, and return how many binaries were made for each."""
    numbers = list[int]()
    for script in scripts:
        with mock.patch.object(host, "with_binaries", wraps=with_binaries) as made:
            assert compile_candidate(source, script, flags).failure is None
        numbers.append(made.call_count)
    return numbers


def tried_alone(source: str, flags: tuple[str, ...]) -> CompileResult:
    """Compile a program that is not known to need the libraries before it is linked."""
    with mock.patch.object(linking, "_OF_LIBRARIES", ()):
        return compile_candidate(source, None, flags)
