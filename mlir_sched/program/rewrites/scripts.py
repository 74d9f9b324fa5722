"""The rewrites that apply to a program, as text (the worker's side of ``program/rewritten.py``)."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from iree.compiler import ir

from mlir_sched.compiler.worker.session import ABI, START, Compilation, CompilerError, context
from mlir_sched.errors import UserError
from mlir_sched.library.parts import parts_of
from mlir_sched.library.rewrite_script import RewriteScript
from mlir_sched.program.rewrites import REWRITES
from mlir_sched.program.rewrites.algorithms import name_of, other_algorithms, with_algorithms
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.transform_scripts.script import new_library, print_module

ALGORITHMS = "other algorithms"
"""What stands for the name of a rewrite where the other algorithms of a program cannot be found."""


def rewrite_scripts(
    path: str, kind: str, cores: int
) -> tuple[tuple[RewriteScript, ...], Mapping[str, str], tuple[str, ...]]:
    """Return the script of every rewrite that applies to a program, and what other algorithms can compute.

    Args:
        path: The program's file.
        kind: The kind of device, a key of ``REWRITES``.
        cores: Cores of a CPU.

    Returns:
        The scripts, the tracebacks of the rewrites that raise an exception, by name, and the parts of the program that
        another algorithm can compute.

    Raises:
        UserError: The compiler rejects the program.
    """
    scripts, raised, parts = list[RewriteScript](), dict[str, str](), tuple[str, ...]()
    with _program(path) as program:
        for rewrite in REWRITES[kind](cores):
            try:
                scripts += [_script(rewrite, program)] if rewrite.applies(program) else []
            except Exception:
                raised[rewrite.name] = traceback.format_exc()
        try:
            parts = other_algorithms(program, kind)
        except Exception:
            raised[ALGORITHMS] = traceback.format_exc()
    return tuple(scripts), raised, parts


def algorithm_scripts(path: str, kind: str, name: str) -> tuple[tuple[str, str, RewriteScript], ...]:
    """Return (part, algorithm, script) per part of a variant that another algorithm can compute.

    Args:
        path, kind: As in :func:`rewrite_scripts`.
        name: Name of the variant's rewrite.

    Raises:
        UserError: The compiler rejects the program.
    """
    with _program(path) as program:
        parts = parts_of(name, other_algorithms(program, kind))
        return tuple((part, name_of(part), _with_algorithms(name, [part], program)) for part in parts)


def script_of(path: str, kind: str, cores: int, name: str, parts: Sequence[str]) -> RewriteScript:
    """Return the script of a rewrite, with another algorithm for some parts of the program.

    Args:
        path, kind, cores: As in :func:`rewrite_scripts`.
        name: Name of the rewrite.
        parts: Some of :func:`other_algorithms`, or none.

    Raises:
        UserError: The compiler rejects the program, or the rewrite does not apply to the program.
    """
    with _program(path) as program:
        if parts:
            return _with_algorithms(name, parts, program)
        for rewrite in REWRITES[kind](cores):
            if rewrite.name == name and rewrite.applies(program):
                return _script(rewrite, program)
    raise UserError(f"{path}: the rewrite {name} does not apply to this program")


@contextmanager
def _program(path: str) -> Iterator[ir.Module]:
    """Give the program as it enters IREE's preprocessing phase."""
    with context(), ir.Location.unknown(), Compilation() as compilation:
        try:
            compilation.load_file(path)
            compilation.run(START, ABI)
        except CompilerError as error:
            raise UserError(str(error).splitlines()[0]) from None
        context().get_dialect_descriptor("transform")  # building ops, unlike parsing them, does not load it
        yield compilation.module()


def _with_algorithms(name: str, parts: Sequence[str], program: ir.Module) -> RewriteScript:
    """Return the script of a rewrite with another algorithm for some parts of the program, at least one."""
    return replace(_script(with_algorithms(name, parts), program), base=name, algorithms=tuple(parts))


def _script(rewrite: ProgramRewrite, program: ir.Module) -> RewriteScript:
    """Return the script of a rewrite that applies to a program."""
    library = new_library()
    symbol = rewrite.append(library, program)
    text = print_module(library)
    return RewriteScript(rewrite.name, symbol, text, rewrite.flags, rewrite.refines, rewrite.mark)
