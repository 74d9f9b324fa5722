"""IREE's compiler inside this process: flags, phases and diagnostics.

Flags are set for the whole process, as in ``iree-compile``: some of IREE's flags (the transform library, code
generation limits) cannot be set per session, and others leak from one session into the next (found in IREE 3.13).
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import lru_cache
from typing import Any

from iree.compiler import ir
from iree.compiler.api import ctypes_dl

from mlir_sched.compiler.version import compiler_version
from mlir_sched.errors import CompilerError

START, ABI, FLOW, SOURCES, CONFIGURATIONS, TARGETS, HAL, VM, END = (
    "start",
    "abi",
    "flow",
    "executable-sources",
    "executable-configurations",
    "executable-targets",
    "hal",
    "vm",
    "end",
)
"""Phases of IREE's pipeline (``iree-compile --compile-to``)."""

_library: Any = ctypes_dl._dylib
_ON_DIAGNOSTIC = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_ERROR = 2  # IREE_COMPILER_DIAGNOSTIC_SEVERITY_ERROR in embedding_api.h
_set_up_flags: list[tuple[str, ...]] = []


def set_up(flags: tuple[str, ...]) -> None:
    """Set this process's compiler flags; a second call has to give the same flags.

    An unknown flag ends the process with LLVM's message, so call this function only in a worker.

    Raises:
        ValueError: The process has other flags already.
    """
    if _set_up_flags == [flags]:
        return
    if _set_up_flags:
        raise ValueError(f"this process compiles with {_set_up_flags[0]}, not with {flags}")
    compiler_version()
    arguments = [argument.encode() for argument in ("mlir-sched", *flags)]
    _library.ireeCompilerSetupGlobalCL(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments), b"", False)
    for name in ("From", "To"):
        function = getattr(_library, f"ireeCompilerInvocationSetCompile{name}Phase")
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_char_p], None
    verification = _library.ireeCompilerInvocationSetVerifyIR
    verification.argtypes, verification.restype = [ctypes.c_void_p, ctypes.c_bool], None
    callback = _library.ireeCompilerInvocationEnableCallbackDiagnostics
    callback.argtypes, callback.restype = [ctypes.c_void_p, ctypes.c_int, _ON_DIAGNOSTIC, ctypes.c_void_p], None
    _set_up_flags.append(flags)


def process_flags() -> tuple[str, ...]:
    """Return the flags of :func:`set_up`."""
    (flags,) = _set_up_flags
    return flags


@lru_cache(maxsize=1)
def session() -> Any:
    """Return the process's compiler session."""
    if not _set_up_flags:
        raise ValueError("call set_up(flags) first")
    return ctypes_dl.Session()


def context() -> ir.Context:
    """Return the session's MLIR context."""
    return session().context


class Compilation:
    """One program on its way through the phases; a context manager.

    Args:
        verifies: Whether the program is verified after every pass, which takes a fifth of the time of the passes up to
            executable-sources (IREE 3.13). Without, an invalid program may end the process.
    """

    def __init__(self, *, verifies: bool = True) -> None:
        self.diagnostics: list[str] = []
        self._errors: list[str] = []
        self._invocation: Any = session().invocation()
        _library.ireeCompilerInvocationSetVerifyIR(self._invocation._inv_p, verifies)
        self._callback = _ON_DIAGNOSTIC(self._on_diagnostic)
        _library.ireeCompilerInvocationEnableCallbackDiagnostics(self._invocation._inv_p, 0, self._callback, None)

    def load_file(self, path: str) -> None:
        """Read a program from a file (text or bytecode, any input dialect)."""
        source = ctypes_dl.Source.open_file(session(), path)
        self._check(self._invocation.parse_source(source))

    def load(self, module: Any) -> None:
        """Load an operation of the session's context; the caller keeps the operation, which is changed in place.

        Raises:
            CompilerError: The operation is not valid.
        """
        with suppress(RuntimeError):
            self._invocation.import_module(module)
            return
        self._check(succeeded=False)

    def run(self, start: str, stop: str) -> None:
        """Run the phases after ``start`` up to and including ``stop``.

        Raises:
            CompilerError: The compiler rejects the program.
        """
        _library.ireeCompilerInvocationSetCompileFromPhase(self._invocation._inv_p, start.encode())
        _library.ireeCompilerInvocationSetCompileToPhase(self._invocation._inv_p, stop.encode())
        self._check(self._invocation.execute())

    def module(self) -> Any:
        """Return the program as it stands (once, after ``load_file``)."""
        return self._invocation.export_module()

    def bytecode(self) -> bytes:
        """Return the compiled program."""
        with ctypes_dl.Output.open_membuffer() as output:
            self._invocation.output_vm_bytecode(output)
            return bytes(output.map_memory())

    def __enter__(self) -> Compilation:
        return self

    def __exit__(self, *_: object) -> None:
        self._invocation.close()

    def _on_diagnostic(self, severity: int, message: int, size: int, _: int) -> None:
        text = ctypes.string_at(message, size).decode(errors="replace")
        self.diagnostics.append(text)
        if severity == _ERROR:
            self._errors.append(text)

    def _check(self, succeeded: bool) -> None:
        if not succeeded or self._errors:
            raise CompilerError("\n".join(self._errors or self.diagnostics) or "the compiler failed without a message")


def run_phases(module: Any, start: str, stop: str) -> None:
    """Run the phases after ``start`` up to and including ``stop`` on an operation, which is changed in place.

    Raises:
        CompilerError: The compiler rejects the program.
    """
    with Compilation() as compilation:
        compilation.load(module)
        compilation.run(start, stop)


def bytecode_of(module: Any) -> bytes:
    """Return the compiled program that a module is after its last phase."""
    with Compilation() as compilation:
        compilation.load(module)
        return compilation.bytecode()
