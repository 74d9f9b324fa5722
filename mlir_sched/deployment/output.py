"""Files that a user names for what is made."""

import mmap
from pathlib import Path

from mlir_sched.errors import UserError
from mlir_sched.tuned_folder.replaced_file import replace_file


def write_output(path: Path, content: bytes | mmap.mmap) -> None:
    """Write a file whole or not at all.

    Raises:
        UserError: The file cannot be written.
    """
    try:
        replace_file(path, content)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}") from error
