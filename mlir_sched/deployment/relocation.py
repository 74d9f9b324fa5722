"""Sets the paths in the flags of a tuned folder that was moved or copied."""

from __future__ import annotations

from pathlib import Path

from mlir_sched.tuned_folder.folder import read_text, read_tuned_folder
from mlir_sched.tuned_folder.installation import FLAGS, EmittedFiles
from mlir_sched.tuned_folder.lock import open_folder
from mlir_sched.tuned_folder.replaced_file import replace_file
from mlir_sched.tuning.options import TuneOptions


def relocate(tuned: str | Path) -> bool:
    """Have ``flags.txt`` of a tuned folder name the library in this folder; say whether the file was changed.

    Args:
        tuned: A folder that ``tune`` wrote.

    Raises:
        UserError: It is no tuned folder, its library is missing, its path cannot be written in flags, it cannot be
            written, or a run writes into it.
    """
    folder = read_tuned_folder(Path(tuned))
    library = folder.library_to_use()
    if library is None:
        return False
    with open_folder(folder.path, str(folder.summary.get("target", TuneOptions.target))) as path:
        own = EmittedFiles(folder.library, folder.flags).response(library)
        changed = own != read_text(path / FLAGS)
        if changed:
            replace_file(path / FLAGS, own.encode())
    return changed
