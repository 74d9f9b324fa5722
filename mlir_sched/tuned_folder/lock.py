"""The output folder of a run: made, checked, and held so that one run at a time writes into it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mlir_sched.compiler.library_flags import library_flags
from mlir_sched.errors import UserError
from mlir_sched.tuned_folder.folder import refuse_other_target
from mlir_sched.tuned_folder.installation import LIBRARY

LOCK = ".lock"
"""The file that a run locks; it holds the run's process id. A file left by a killed process is no longer locked."""


@contextmanager
def open_folder(folder: Path, target: str) -> Iterator[Path]:
    """Yield the path of the output folder, made if need be and held until the end.

    Args:
        folder: Where to write.
        target: Name of the target whose results are written.

    Raises:
        UserError: The folder cannot be written, holds results for another target, or another run writes into it.
    """
    refuse_other_target(folder, target)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder = folder.resolve()
        library_flags(folder / LIBRARY)  # refuses a path that no flag can name
        lock = _lock(folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot write the output folder: {error.strerror or error}") from error
    try:
        yield folder
    finally:
        with suppress(OSError):
            (folder / LOCK).unlink()
        os.close(lock)


def _lock(folder: Path) -> int:
    """Lock the folder's lock file and return its descriptor; the system unlocks it even when the process is killed.

    Raises:
        UserError: Another process, or another run in this one, holds the lock.
        OSError: The file cannot be made or locked.
    """
    path = folder / LOCK
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, file):
                os.ftruncate(file, 0)
                os.pwrite(file, str(os.getpid()).encode(), 0)
                return file
        except BlockingIOError:
            holder = os.pread(file, 20, 0).decode() or "unknown"
            os.close(file)
            raise UserError(
                f"{folder}: another run (process {holder}) writes into this folder: wait until it is done, "
                "or choose another folder with -o"
            ) from None
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # its run ended and removed the file after we had opened it


def _is_at(path: Path, file: int) -> bool:
    """Say whether a path still names the file that is open."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(file))
    return False
