"""The process that runs compiled programs, one request at a time; started by :mod:`mlir_sched.runner`.

The process ends when its connection closes, and so when the runner ends, even by ``kill -9``: a thread waits for
messages while programs run, and IREE releases Python's global lock meanwhile.
"""

import os
import queue
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from mlir_sched.errors import Failure, FailureClass, FailureOrigin
from mlir_sched.processes.frames import read_frame, write_frame
from mlir_sched.runner import protocol
from mlir_sched.runner.worker.benches.bench import Bench
from mlir_sched.runner.worker.benches.calls_bench import CallsBench
from mlir_sched.runner.worker.benches.device_bench import DeviceBench
from mlir_sched.runner.worker.benches.local_bench import LocalBench
from mlir_sched.runner.worker.kept_references import KeptReferences

MISTAKES = (TypeError, AttributeError, NameError, LookupError, AssertionError, ArithmeticError)
"""Exceptions that no program causes: IREE raises RuntimeError and ValueError, and full memory raises MemoryError."""
TRACEBACK_CHARACTERS = 2000

BENCHES: Mapping[type[protocol.Setup], Callable[[Any, Path], Bench]] = {
    protocol.WallSetup: lambda setup, _: LocalBench(setup),
    protocol.EventsSetup: DeviceBench,
    protocol.CallsSetup: lambda setup, _: CallsBench(setup),
}
"""Makes the bench of a set-up, which keeps files in a folder."""


def main() -> None:
    """Serve requests until the connection closes."""
    connection = int(sys.argv[1])
    start: protocol.Start = read_frame(connection)
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(connection, requests, start.folder), daemon=True).start()
    bench = BENCHES[type(start.setup)](start.setup, Path(start.folder))
    bench.references = KeptReferences(Path(start.kept))
    bench.on_call = lambda seconds: write_frame(connection, protocol.Called(seconds))
    write_frame(connection, None)
    while True:
        request = requests.get()
        try:
            reply = _answer(bench, request)
        except protocol.RequestFailed as failed:
            reply = protocol.Raised(failed.failure)
        except Exception as exception:
            reply = protocol.Raised(_failure(exception))
        write_frame(connection, reply)


def _answer(bench: Bench, request: Any) -> Any:
    """Return the reply to one request."""
    match request:
        case protocol.Prepare():
            return bench.prepare(request)
        case protocol.Load():
            return bench.load(request.handle, request.program)
        case protocol.Drop():
            return bench.drop(request.handle)
        case protocol.Verify():
            bench.forget_sample()
            verify = bench.verify_races if request.races else bench.verify
            return verify(request.handle, request.check)
        case protocol.Warm():
            return bench.rough_s(request.handle, request.sample_s)
        case protocol.SamplePairs():
            return bench.pairs(request)
        case protocol.MeasureLoading():
            return bench.loading(request)
        case protocol.MeasureNoise():
            return bench.noise(request.seconds)
    raise TypeError(f"unknown request {type(request).__name__}")


def _failure(exception: Exception) -> Failure:
    """Return the failure for an exception: a mistake of ours (:data:`MISTAKES`), or an error of a program.

    Files are this process's own, and no program raises MemoryError: IREE's errors of allocation are RuntimeErrors.
    """
    if isinstance(exception, MISTAKES):
        return Failure(FailureClass.INTERNAL_ERROR, traceback.format_exc()[-TRACEBACK_CHARACTERS:])
    if isinstance(exception, OSError | MemoryError):
        text = f"{type(exception).__name__}: {exception}"
        return Failure(FailureClass.RUN_ERROR, text, FailureOrigin.ENVIRONMENT)
    return Failure(FailureClass.RUN_ERROR, f"{type(exception).__name__}: {exception}")


def _read_requests(connection: int, requests: queue.SimpleQueue[Any], folder: str) -> None:
    try:
        while True:
            requests.put(read_frame(connection))
    except BaseException:
        _end(folder)


def _end(folder: str) -> NoReturn:
    """End this process and its children and remove its files: the parent may be gone and cannot do so then."""
    sys.stderr.flush()
    shutil.rmtree(folder, ignore_errors=True)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    try:
        main()
    except (ConnectionError, EOFError):
        os._exit(0)
