"""The output folder of a run: made, checked, and held so that one run at a time writes into it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mlir_sched.compiler.flags import library_flags
from mlir_sched.errors import UserError
from mlir_sched.tuned_folder.claim import Claim
from mlir_sched.tuned_folder.names import LIBRARY, LOCK


@contextmanager
def open_folder(folder: Path, claim: Claim) -> Iterator[Path]:
    """Yield the path of the output folder, made if need be and held until the end.

    Args:
        folder: Where to write.
        claim: What is written.

    Raises:
        UserError: The claim is refused (:meth:`Claim.require`), the folder cannot be written, or another run writes
            into it.
    """
    claim.require(folder)
    with hold_folder(folder) as held:
        yield held


@contextmanager
def hold_folder(folder: Path) -> Iterator[Path]:
    """Yield the path of a folder, made if need be and held until the end.

    Raises:
        UserError: The folder cannot be written, or another run writes into it.
    """
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
                _require_lock(path, os.pread(file, 20, 0))
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


def _require_lock(path: Path, content: bytes) -> None:
    """Refuse a file that holds something else than the process id of an ended run.

    Raises:
        UserError: See above.
    """
    if content and not content.isdigit():
        raise UserError(f"{path} is not the lock of a run; choose another folder with -o")


def _is_at(path: Path, file: int) -> bool:
    """Say whether a path still names the file that is open."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(file))
    return False
