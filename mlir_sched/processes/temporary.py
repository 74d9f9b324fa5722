"""Temporary folders that are removed in the end, even after ``kill -9``.

All temporary folders of a process lie in one folder, which is locked while the process lives. The kernel releases the
lock when the process dies, so the next process can tell which folders are unused, and removes them. Unlike a process
id, a lock is never reused by another process, and it is visible from other containers.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PREFIX = "mlir-sched-run-"
"""Prefix of the names of the folders of processes."""


@dataclass(frozen=True)
class _Locked:
    """The folder of a process, with the open descriptor that holds its lock."""

    path: Path
    descriptor: int
    owner: int


_guard = threading.Lock()
_own: list[_Locked] = []


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a new folder inside this process's folder: a context manager that gives its path and removes it."""
    return tempfile.TemporaryDirectory(prefix="", dir=session_folder(), ignore_cleanup_errors=True)


def session_folder() -> Path:
    """Return this process's folder; the first call makes it, and removes the folders of dead processes."""
    with _guard:
        for folder in _own:
            if folder.owner == os.getpid() and folder.path.is_dir():
                return folder.path
        remove_stale_folders()
        _own.append(_make_locked())
        atexit.register(remove_session_folder)
        return _own[-1].path


def remove_session_folder() -> None:
    """Remove this process's folder with all that is in it; the next use makes another one."""
    with _guard:
        for folder in [folder for folder in _own if folder.owner == os.getpid()]:
            shutil.rmtree(folder.path, ignore_errors=True)
            os.close(folder.descriptor)
            _own.remove(folder)


def remove_stale_folders() -> None:
    """Remove the folders that this user's dead processes have left behind."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            _remove_if_stale(path)


def _remove_if_stale(path: Path) -> None:
    """Remove a folder that no process has locked.

    Raises:
        OSError: The folder is locked, or this user may not open it.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_uid == os.geteuid():
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(descriptor)


def _make_locked() -> _Locked:
    """Make a folder and lock it; make another if some process removes it as stale before it is locked."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if path.is_dir():
            return _Locked(path, descriptor, os.getpid())
        os.close(descriptor)
