"""Writes the files of a result into a tuned folder, so that the folder's manifest knows them at every instant."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mlir_sched.errors import UserError
from mlir_sched.tuned_folder.manifest import Manifest, Source, manifest_of, read_manifest, write_manifest
from mlir_sched.tuned_folder.names import RESULT
from mlir_sched.tuned_folder.replaced_file import left_temporaries, replace_file

_PASSING = re.compile(r"library\.\w+\.mlir")


@dataclass
class OwnFiles:
    """The writer of a folder's files.

    Attributes:
        folder: The folder, whose files of a result are all ours.
        manifest: Its manifest.
    """

    folder: Path
    manifest: Manifest

    @staticmethod
    def of(folder: Path, source: Source) -> OwnFiles:
        """Return the writer for a folder whose files may be replaced by a result of a source."""
        return OwnFiles(folder, manifest_of(folder, source, {*RESULT, *_passing(folder)}))

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the result."""
        self.manifest = self.manifest.expecting(name, content)
        write_manifest(self.folder, self.manifest)
        replace_file(self.folder / name, content)

    def remove(self, name: str) -> None:
        """Remove a file of the result if it is there."""
        (self.folder / name).unlink(missing_ok=True)

    def settle(self) -> None:
        """End the writing: what writers needed on the way is removed, and the manifest has the files as they are."""
        passing = [self.folder / name for name in self.manifest.files if name not in RESULT]
        for path in (*filter(self.manifest.knows, passing), *left_temporaries(self.folder)):
            path.unlink()
        self.manifest = manifest_of(self.folder, self.manifest.source, RESULT)
        write_manifest(self.folder, self.manifest)


def _passing(folder: Path) -> list[str]:
    """Return the names under which a killed writer may have left a library, as the folder's manifest has them."""
    with suppress(UserError):
        earlier = read_manifest(folder)
        return [name for name in earlier.files if _PASSING.fullmatch(name)] if earlier else []
    return []
