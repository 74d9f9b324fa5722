"""Compiles a whole model the way a user does: with the real ``iree-compile``, flags and a transform library.

``iree-compile`` exits with 0 and generates its default code when a sequence does not apply (found in IREE 3.13), so any
error that it prints counts as a failure, even with exit code 0.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path

from mlir_sched.attributes import REWRITTEN
from mlir_sched.compiler.flags import library_flags
from mlir_sched.compiler.reasons import reason
from mlir_sched.compiler.tuned_dispatch import TunedDispatch, read_tuned_dispatches
from mlir_sched.compiler.version import SUPPORTED, compiler_program, compiler_version
from mlir_sched.errors import EnvironmentFailureError, FailureClass, MlirSchedError, UserError
from mlir_sched.processes.executable import run_program, running_program, signal_name
from mlir_sched.processes.limits import ChildError, ChildLimits, ChildTimeoutError
from mlir_sched.processes.memory import child_memory_bytes
from mlir_sched.processes.shortage import says_shortage
from mlir_sched.processes.temporary import temporary_folder

_ERROR = re.compile(r"(?:^|\s)error:", re.MULTILINE)
_REWRITTEN = re.compile(rf'\b{re.escape(REWRITTEN)} = "([^"]*)"')
_SHORT = ("--mlir-elide-elementsattrs-if-larger=4096", "--mlir-elide-resource-strings-if-larger=4096")
"""Flags that leave large constants out of text that is read only for its ops: the weights of a large model are most of
its text. Constants inside dispatches are below these limits."""
_UNVERIFIED = "--verify=false"
PROGRAM = "MLIR_SCHED_IREE_COMPILE"
"""Environment variable that names the ``iree-compile`` to use, of the version of the installed package."""
_MESSAGE_LINES = 6
_TIMEOUT_S = 3600.0
_VERSION_S = 60.0


class Shown(Enum):
    """What a compilation of a model shows beside the compiled model, by the pass after which the compiler prints it."""

    REWRITES = "iree-transform-dialect-interpreter"
    """What the rewrite of the library put in place."""
    SCRIPTS = "iree-hal-configure-executables"
    """The dispatches that have a script."""


_FOLDERS = {Shown.REWRITES: "*", Shown.SCRIPTS: "*/hal_executable_*"}
"""Where the compiler prints the program, and its dispatches: in a folder per operation, inside that of the operation
around. A program that IREE makes of constants, to evaluate them, lies inside the model's (JitGlobals.cpp)."""


@dataclass(frozen=True)
class CompiledProgram:
    """A compiled model, and what its compilation showed.

    Attributes:
        rewrites: As :func:`rewrites_in` returns them; empty unless they are shown.
        scripts: The dispatches to which a sequence of the library is applied; empty unless they are shown.
    """

    vmfb: bytes
    rewrites: Mapping[str, int] = field(default_factory=dict)
    scripts: tuple[TunedDispatch, ...] = ()


class ModelCompileError(MlirSchedError):
    """``iree-compile`` failed, or printed an error and went on.

    Attributes:
        diagnostics: All messages of the compiler, or how it ended where a crash left none; empty where it is not the
            compiler that failed. The exception's own message is a few lines from the first error on.
        kind: The class of the failure.
    """

    def __init__(self, message: str, diagnostics: str = "", kind: FailureClass = FailureClass.COMPILE_ERROR) -> None:
        super().__init__(message)
        self.diagnostics, self.kind = diagnostics, kind


class ModelLimitError(ModelCompileError, UserError):
    """``iree-compile`` needs more time or memory for the program than this machine can give."""


def compile_model(model_path: str | Path, flags: tuple[str, ...], library: Path | None, output: Path) -> None:
    """Compile a model to a runnable program in ``output``; no file is left there when it fails.

    Args:
        model_path: A program in any form that ``iree-compile`` reads.
        library: A transform library with the two entries that ``library_flags`` names, or None.

    Raises:
        ModelCompileError: The compiler failed or reported an error.
        EnvironmentFailureError: This machine has no space left, for one.
    """
    try:
        with _running_iree_compile(model_path, flags, library, "-o", str(output)) as wait:
            wait()
    except ModelCompileError:
        output.unlink(missing_ok=True)
        raise


@contextmanager
def compiling(
    model_path: str | Path,
    flags: tuple[str, ...],
    library: Path | None = None,
    shown: Collection[Shown] = (),
    *,
    verifies: bool = True,
) -> Iterator[Callable[[], CompiledProgram]]:
    """Compile a model beside other work: start the compiler, and yield a function that returns the compiled model.

    Most of the compiler's time is in one thread (LLVM, for the linked code of all dispatches). The compiler is stopped
    when the context is left before its end. The other arguments are those of :func:`compile_model`.

    Args:
        shown: What the compilation shows on its way; the compiled model is the same.
        verifies: Whether the compiler verifies the program after every pass: a fifth of its time, and the same compiled
            model. Without, a compilation that fails is repeated with it, for the reason.

    Raises:
        ModelCompileError: By the function: the compiler failed or reported an error.
    """
    with temporary_folder() as folder:
        output, printed = Path(folder) / "model.vmfb", Path(folder) / "printed"
        arguments = (*_printing(shown, printed), "-o", str(output))
        own = flags if verifies else (*flags, _UNVERIFIED)
        with _running_iree_compile(model_path, own, library, *arguments) as wait:

            def compiled() -> CompiledProgram:
                try:
                    wait()
                except ModelCompileError as error:
                    if verifies or isinstance(error, ModelLimitError):
                        raise
                    return compile_showing(model_path, flags, library, shown)
                rewrites = "".join(file.read_text() for file in _files(Shown.REWRITES, printed))
                scripts = read_tuned_dispatches(_files(Shown.SCRIPTS, printed))
                return CompiledProgram(output.read_bytes(), rewrites_in(rewrites), scripts)

            yield compiled


def compile_to_bytes(model_path: str | Path, flags: tuple[str, ...], library: Path | None = None) -> bytes:
    """Return a compiled model; the arguments and errors are those of :func:`compile_model`."""
    return compile_showing(model_path, flags, library, ()).vmfb


def compile_showing(
    model_path: str | Path, flags: tuple[str, ...], library: Path | None = None, shown: Collection[Shown] = tuple(Shown)
) -> CompiledProgram:
    """Return a compiled model, and what its compilation shows; arguments and errors as of :func:`compiling`."""
    with compiling(model_path, flags, library, shown) as compiled:
        return compiled()


def _printing(shown: Collection[Shown], folder: Path) -> tuple[str, ...]:
    """Return the flags with which a compilation prints what it shows into a folder, a file per pass and operation."""
    if not shown:
        return ()
    passes = ",".join(each.value for each in shown)
    return (f"--mlir-print-ir-after={passes}", f"--mlir-print-ir-tree-dir={folder}", *_SHORT)


def _files(shown: Shown, folder: Path) -> list[Path]:
    """Return the files that a compilation printed, without those of programs inside of the model's."""
    return sorted(folder.glob(f"{_FOLDERS[shown]}/*_{shown.value}.mlir"))


def rewrites_in(text: str) -> dict[str, int]:
    """Return the number of pieces of a program that each rewrite put in place, by the rewrite's name.

    What is put in place carries ``mlir_sched.rewritten = "name"``, which stays on it until the end of preprocessing.

    Args:
        text: The program after IREE's ``preprocessing`` phase (``iree-compile --compile-to=preprocessing``).
    """
    return dict(sorted(Counter(found.group(1) for found in _REWRITTEN.finditer(text)).items()))


def iree_compile_path() -> Path:
    """Return the ``iree-compile`` that the environment names (:data:`PROGRAM`), else that of the installed package.

    Raises:
        UserError: There is no such program; the package is missing, or has another version than this package needs.
    """
    compiler_version()
    if named := os.environ.get(PROGRAM):
        _require_supported(named)
        return Path(named)
    if program := compiler_program("iree-compile"):
        return program
    raise UserError("iree-compile is missing from the installed iree-base-compiler package; reinstall it")


@cache
def _require_supported(named: str) -> None:
    if not (Path(named).is_file() and os.access(named, os.X_OK)):
        raise UserError(f"{PROGRAM}={named}: there is no such program")
    try:
        ended = run_program([named, "--version"], ChildLimits(_VERSION_S, child_memory_bytes()))
    except ChildError as error:
        raise UserError(f"{PROGRAM}={named}: {error}") from None
    said = ended.output.decode(errors="replace")
    if f"IREE compiler version {SUPPORTED}." not in said:
        raise UserError(f"{PROGRAM}={named}: IREE {SUPPORTED}.x is needed, and this program is none: {reason(said)}")


@contextmanager
def _running_iree_compile(
    model_path: str | Path, flags: tuple[str, ...], library: Path | None, *arguments: str
) -> Iterator[Callable[[], None]]:
    """Start the compiler, and yield a function that waits for its end."""
    of_library = () if library is None else library_flags(library)
    command = [str(iree_compile_path()), *flags, *of_library, _as_file(model_path), *arguments]
    with running_program(command, ChildLimits(_TIMEOUT_S, child_memory_bytes())) as ended:

        def wait() -> None:
            try:
                done = ended()
            except ChildError as error:
                late = isinstance(error, ChildTimeoutError)
                kind = FailureClass.COMPILE_TIMEOUT if late else FailureClass.COMPILE_MEMORY
                raise ModelLimitError(f"iree-compile {model_path}: {error}", kind=kind) from None
            messages = done.errors.decode(errors="replace")
            if done.code != 0 and says_shortage(messages):
                raise EnvironmentFailureError(_summary(model_path, done.code, messages))
            if done.code != 0 or _ERROR.search(messages):
                summary = _summary(model_path, done.code, messages)
                kind = FailureClass.COMPILE_CRASH if done.code < 0 else FailureClass.COMPILE_ERROR
                raise ModelCompileError(summary, messages or summary, kind)

        yield wait


def _as_file(path: str | Path) -> str:
    """Return a path that ``iree-compile`` takes for neither a flag nor a response file."""
    return f"./{path}" if str(path).startswith(("-", "@")) else str(path)


def _summary(model_path: str | Path, code: int, messages: str) -> str:
    lines = messages.strip().splitlines()
    first = next((i for i, line in enumerate(lines) if _ERROR.search(line)), 0)
    return "\n".join([f"iree-compile {model_path} failed ({_how(code)}):", *lines[first : first + _MESSAGE_LINES]])


def _how(code: int) -> str:
    return f"killed by {signal_name(-code)}" if code < 0 else f"exit code {code}"
