"""The folder for temporary files: whether files can be made there, and whether IREE takes its path."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from mlir_sched.compiler.library_flags import library_flags
from mlir_sched.errors import UnusablePathError, UserError
from mlir_sched.processes.temporary import temporary_folder

_ADVICE = "set TMPDIR to another folder"


def require_scratch() -> Path:
    """Return the folder in which all temporary files are made.

    Python takes another folder where the one of ``TMPDIR`` cannot be written; IREE's linker does not, and fails.

    Raises:
        UserError: No file can be made in the folder, or IREE does not take its path.
    """
    wanted = os.environ.get("TMPDIR")
    if wanted and not _is_writable(Path(wanted)):
        raise UserError(f"{wanted}: temporary files cannot be written (TMPDIR); make the folder, or {_ADVICE}")
    try:
        with temporary_folder() as folder:
            library_flags(Path(folder) / "library.mlir")
    except UnusablePathError as error:
        raise UserError(f"{tempfile.gettempdir()}, for temporary files: {error.why}; {_ADVICE}") from error
    except OSError as error:
        where = error.filename or "temporary files"
        raise UserError(f"{where}: cannot be written ({error.strerror or error}); make room, or {_ADVICE}") from error
    return Path(tempfile.gettempdir())


def _is_writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
