"""Sets the paths in the flags of a tuned folder that was moved or copied."""

from pathlib import Path

from mlir_sched.tuned_folder.folder import read_text, read_tuned_folder
from mlir_sched.tuned_folder.installation import EmittedFiles
from mlir_sched.tuned_folder.lock import hold_folder
from mlir_sched.tuned_folder.manifest import read_manifest, write_manifest
from mlir_sched.tuned_folder.names import FLAGS
from mlir_sched.tuned_folder.replaced_file import replace_file


def relocate(tuned: str | Path) -> bool:
    """Have ``flags.txt`` of a tuned folder name the library in this folder; say whether the file was changed.

    Raises:
        UserError: It is no tuned folder, its library is missing, its path cannot be written in flags, it cannot be
            written, or a run writes into it.
    """
    folder = read_tuned_folder(Path(tuned))
    library = folder.library_to_use()
    if library is None:
        return False
    with hold_folder(folder.path) as path:
        flags = EmittedFiles(folder.library, folder.flags).response(library)
        changed = flags != read_text(path / FLAGS)
        if changed:
            _replace_flags(path, flags.encode())
    return changed


def _replace_flags(folder: Path, flags: bytes) -> None:
    """Replace a folder's flags; they stay edited by hand, and so unknown to its manifest, where they were."""
    manifest = read_manifest(folder)
    if manifest is not None and manifest.knows(folder / FLAGS):
        write_manifest(folder, manifest.expecting(FLAGS, flags))
    replace_file(folder / FLAGS, flags)
