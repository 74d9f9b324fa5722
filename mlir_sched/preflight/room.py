"""The room that a run needs on the file systems that it writes to, the folder for temporary files among them."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlir_sched.compiler.flags import library_flags
from mlir_sched.errors import UnusablePathError, UserError
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.tuning.budget import trials_of
from mlir_sched.tuning.options import TuneOptions

SCRATCH_BYTES = 32 << 20
"""Bytes of temporary files of a small program: its code, that of its variants, libraries, objects of the linker."""
COPIES = 2
"""Copies of a model that lie in temporary files at once, at most: a compiled program holds the constants, and one
program may be written while another one is read. With 16 MiB of weights, 17 MiB lay there at most."""
FOLDER_BYTES = 8 << 20
"""Bytes of a tuned folder without its records: the library, the summary, and the report with its pictures, all of which
grow with the number of dispatches, about 20 kB each."""
RECORD_BYTES = 16 << 10
"""Bytes of one record in a store, with its part of the write-ahead log."""
TASKS = 32
"""Dispatches of a program, for which the room for records is found before they are counted."""
CANDIDATES_PER_S = 4
"""Most candidates that a run by time evaluates per second, about: one core compiles and measures two."""
_ADVICE = "set TMPDIR to another folder"


@dataclass(frozen=True)
class Need:
    """Room that is needed in a folder.

    Attributes:
        folder: A folder that exists.
        bytes: How much is written there at most, about.
        what: What is written.
        advice: How to choose another folder.
    """

    folder: Path
    bytes: int
    what: str
    advice: str


def needs_of(model: Path, scratch: Path, folder: Path | None, store: Path | None, options: TuneOptions) -> list[Need]:
    """Return the room that a run needs.

    Args:
        model: The program; its size is that of its constants, about.
        folder: The output folder; None for none.
        store: The file of the record store; None for a database server.
        options: The options, of which the budget says how many records there may be.
    """
    temporary = SCRATCH_BYTES + COPIES * model.stat().st_size
    needs = [Need(scratch, temporary, "temporary files", "set TMPDIR to another folder")]
    if folder is not None:
        needs.append(Need(folder, FOLDER_BYTES, "the tuned folder", "choose another folder with -o"))
    if store is not None:
        needs.append(Need(store.parent, RECORD_BYTES * _records(options), "records", "give another file with --store"))
    return needs


def require_room(needs: Sequence[Need]) -> None:
    """Check that the file systems have the room; needs on the same one add up.

    Raises:
        UserError: One has too little room.
    """
    together: dict[int, list[Need]] = {}
    for need in needs:
        together.setdefault(need.folder.stat().st_dev, []).append(need)
    for group in together.values():
        free, needed = shutil.disk_usage(group[0].folder).free, sum(need.bytes for need in group)
        if free < needed:
            what = " and ".join(need.what for need in group)
            raise UserError(
                f"{group[0].folder}: {_mebibytes(free)} free, and the run may write {_mebibytes(needed)} of {what}; "
                f"make room, or {group[0].advice}"
            )


def _records(options: TuneOptions) -> int:
    """Return how many records a run makes at most, about."""
    if options.minutes is not None:
        return round(60 * options.minutes * CANDIDATES_PER_S)
    return trials_of(options, TASKS)


def _mebibytes(number: int) -> str:
    return f"{number / 2**20:.0f} MiB"


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
