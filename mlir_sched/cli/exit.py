"""The end of a command: exceptions become one or two lines on stderr and an exit code."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO

import typer

from mlir_sched.errors import IllegalTraceError, MlirSchedError, ScriptError, UserError
from mlir_sched.processes.shortage import SHORT

DONE, OUR_FAULT, USER_FAULT, INTERRUPTED = 0, 1, 2, 130
"""The exit codes of every command."""
DEBUG = "MLIR_SCHED_DEBUG"
"""Set to 1, this variable shows tracebacks on the terminal."""
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM)
"""Errors of the system for which the user's path is to blame."""
LOG_BEGIN, LOG_END = "mlir-sched-error-", ".log"
"""Begin and end of the name of a log; the rest is random, as the folder may be shared with other users."""


class Output:
    """The destination of a command's result: a JSON document on stdout, or text for people."""

    def __init__(self, stdout: TextIO, as_json: bool) -> None:
        self.stdout = stdout
        self.as_json = as_json

    def document(self, data: Any) -> None:
        """Write the one JSON document of a command."""
        self.stdout.write(json.dumps(data, indent=2) + "\n")
        self.stdout.flush()

    def show(self, data: Callable[[], Any], text: Callable[[], None]) -> None:
        """Write what a command found: ``data`` returns the document, and ``text`` prints it for people."""
        if self.as_json:
            self.document(data())
        else:
            text()


def take_termination_for_interrupt() -> None:
    """Have SIGTERM do what Ctrl-C does, in this process."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def ignore_interrupts() -> None:
    """Ignore SIGINT and SIGTERM: the rest of the process takes a moment and no longer affects the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def command(*, as_json: bool = False, log_folder: Path | None = None) -> Iterator[Output]:
    """Run a command's body; an exception becomes a message and an exit code.

    With ``as_json``, nothing but the document reaches stdout: output of user code goes to stderr, and an error is a
    document as well.

    Args:
        log_folder: Where the traceback of an internal error is kept, if it can be written.
    """
    output = Output(sys.stdout, as_json)
    try:
        with redirect_stdout(sys.stderr if as_json else sys.stdout):
            yield output
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, typer.Exit):
            raise
        if isinstance(error, BrokenPipeError):
            _stop_writing()
            raise typer.Exit(OUR_FAULT) from None
        if os.environ.get(DEBUG) == "1":
            traceback.print_exc()
        code, message = _describe(error, log_folder)
        print(message, file=sys.stderr)
        if as_json:
            output.document({"error": message.removeprefix("error: "), "exit_code": code})
        raise typer.Exit(code) from None


def _stop_writing() -> None:
    """Redirect stdout to the null device, because its reader has gone."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _describe(error: BaseException, log_folder: Path | None) -> tuple[int, str]:
    """Return the exit code and the message of an exception."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted" + ("; what was measured is in the record store" if log_folder else "")
    if isinstance(error, UserError | ScriptError | IllegalTraceError):
        return USER_FAULT, f"error: {error}"
    if isinstance(error, OSError) and error.errno in _REFUSED:
        return USER_FAULT, f"error: {error.filename or 'a file'}: {error.strerror}"
    if (isinstance(error, OSError) and error.errno in SHORT) or isinstance(error, MemoryError):
        where = getattr(error, "filename", None) or "this machine"
        what = getattr(error, "strerror", None) or "no memory left"
        return OUR_FAULT, f"error: {where}: {what}; what was measured is kept, and the same command goes on from there"
    if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("mlir_sched"):
        return OUR_FAULT, f"error: the Python package {error.name} is missing; install mlir-sched again with pip"
    if isinstance(error, MlirSchedError) and not _is_programming_error(error):
        return OUR_FAULT, f"error: {error}"
    path = _write_log(error, log_folder)
    first = (str(error).strip().splitlines() or [""])[0]
    return OUR_FAULT, f"internal error: {type(error).__name__}: {first}\nthe traceback is in {path}; please report it"


def _is_programming_error(error: MlirSchedError) -> bool:
    return type(error).__name__ == "JobError"  # compared by name: help must not load its module, which starts processes


def _write_log(error: BaseException, folder: Path | None) -> str:
    text = "".join(traceback.format_exception(error))
    for place in (folder, Path(tempfile.gettempdir())):
        if place is None or not place.is_dir():
            continue
        try:
            log, path = tempfile.mkstemp(LOG_END, LOG_BEGIN, place)
            with os.fdopen(log, "w") as file:
                file.write(text)
        except OSError:
            continue
        return path
    return f"no file, because none can be written; set {DEBUG}=1 to see it"
