"""The main program of a worker process (see ``compiler/worker_process.py``)."""

import contextlib
import fcntl
import importlib
import os
import signal
import sys
import traceback
from typing import Any

from mlir_sched.compiler.worker_process import JobEnvironmentError, JobError
from mlir_sched.errors import CompilerError, UserError
from mlir_sched.processes.frames import read_frame, write_frame


def main() -> None:
    """Serve jobs until the parent closes its end."""
    connection = int(sys.argv[1])
    die_with_parent(int(sys.argv[2]))
    with contextlib.suppress(EOFError, ConnectionError):
        started, error = run("mlir_sched.compiler.worker.session:set_up", (read_frame(connection),))
        write_frame(connection, error)
        while started:
            job, arguments = read_frame(connection)
            write_frame(connection, run(job, arguments))


def die_with_parent(lifeline: int) -> None:
    """Let the kernel end this process when the parent's end of the pipe closes, even while native code runs.

    The parent never writes to the pipe. The kernel sends SIGIO when the parent's end closes; its default action is to
    terminate the process.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def run(job: str, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    """Run a job and return (True, result) or (False, exception).

    No program that is compiled raises OSError or MemoryError: the compiler tells its own errors by diagnostics, which
    are no error of the job.
    """
    module, _, function = job.partition(":")
    try:
        return True, getattr(importlib.import_module(module), function)(*arguments)
    except (UserError, CompilerError) as error:
        return False, error
    except (OSError, MemoryError) as error:
        return False, JobEnvironmentError(f"{type(error).__name__}: {error}")
    except Exception:
        return False, JobError(traceback.format_exc())


if __name__ == "__main__":
    main()
