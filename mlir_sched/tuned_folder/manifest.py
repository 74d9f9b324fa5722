"""The manifest of a tuned folder, which says what our files are and of which model, and the writer of these files.

The manifest has digests of content, which tell our files from edited ones and from those of somebody else. While a file
is replaced, the manifest has the digests of both contents: a writer that is killed at any instant leaves a folder whose
files are all known.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from mlir_sched.errors import UserError
from mlir_sched.tensors.parameters import ParameterFile
from mlir_sched.tuned_folder.names import MANIFEST, RESULT
from mlir_sched.tuned_folder.replaced_file import left_temporaries, replace_file

SAMPLES, SAMPLE_BYTES = 64, 1 << 16
"""Parts of a file with weights that are read, evenly spaced with both ends: at most 4 MiB. Weights of another training
differ in nearly every part. Files that differ only between the parts count as the same."""
_TEMPORARY_LIBRARY = re.compile(r"library\.\w+\.mlir")


@dataclass(frozen=True)
class Source:
    """What a result was made from.

    Attributes:
        model: Digest of the model (:func:`model_digest`), equal wherever the model's files lie.
        model_file: Name of the model's file, for people.
        target: The target that the result is for.
    """

    model: str
    model_file: str
    target: str


@dataclass(frozen=True)
class Manifest:
    """The files of a folder that are ours.

    Attributes:
        source: What they were made from.
        files: Digests of the contents that each file may have, by the file's name.
    """

    source: Source
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def knows(self, path: Path) -> bool:
        """Say whether a file of the folder has a content that was written by a run."""
        return path.is_file() and content_digest(path) in self.files.get(path.name, ())

    def expecting(self, name: str, content: bytes) -> Manifest:
        """Return the manifest for a folder in which a file is about to get a content."""
        digest = hashlib.sha256(content).hexdigest()
        return replace(self, files={**self.files, name: (*self.files.get(name, ()), digest)})


@dataclass
class ResultWriter:
    """The writer of a result into a folder, whose manifest knows the files at every instant.

    Attributes:
        folder: The folder, whose files of a result are all ours.
    """

    folder: Path
    manifest: Manifest

    @staticmethod
    def of(folder: Path, source: Source) -> ResultWriter:
        """Return the writer for a folder whose files may be replaced by a result of a source."""
        return ResultWriter(folder, manifest_of(folder, source, {*RESULT, *_temporary_libraries(folder)}))

    def write(self, name: str, content: bytes) -> None:
        """Write a file of the result."""
        self.manifest = self.manifest.expecting(name, content)
        write_manifest(self.folder, self.manifest)
        replace_file(self.folder / name, content)

    def remove(self, name: str) -> None:
        """Remove a file of the result if it is there."""
        (self.folder / name).unlink(missing_ok=True)

    def finish(self) -> None:
        """Remove temporary files, also those of killed writers, and keep the manifest of the files as they are."""
        temporary = [self.folder / name for name in self.manifest.files if name not in RESULT]
        for path in (*filter(self.manifest.knows, temporary), *left_temporaries(self.folder)):
            path.unlink()
        self.manifest = manifest_of(self.folder, self.manifest.source, RESULT)
        write_manifest(self.folder, self.manifest)


def manifest_of(folder: Path, source: Source, names: Iterable[str]) -> Manifest:
    """Return the manifest of those files of a folder that have the given names, as they are."""
    present = (folder / name for name in sorted(names))
    return Manifest(source, {path.name: (content_digest(path),) for path in present if path.is_file()})


def _temporary_libraries(folder: Path) -> list[str]:
    """Return the names under which a killed writer may have left a library, as the folder's manifest has them."""
    with suppress(UserError):
        earlier = read_manifest(folder)
        return [name for name in earlier.files if _TEMPORARY_LIBRARY.fullmatch(name)] if earlier else []
    return []


def model_digest(model: Path, parameters: Sequence[ParameterFile]) -> str:
    """Return a SHA-256 of a model's file and of the scopes, sizes and samples of its weights, in hexadecimal."""
    digest = hashlib.sha256(content_digest(model).encode())
    for file in sorted(parameters, key=lambda file: file.scope):
        digest.update(f"\0{file.scope}\0{Path(file.path).stat().st_size}\0".encode())
        for part in _samples(Path(file.path)):
            digest.update(part)
    return digest.hexdigest()


def content_digest(path: Path) -> str:
    """Return a SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder; None when there is none.

    Raises:
        UserError: The file with the manifest's name is no manifest.
    """
    path = folder / MANIFEST
    if not os.path.lexists(path):
        return None
    try:
        data = json.loads(path.read_text())
        files = {str(name): tuple(map(str, digests)) for name, digests in data["files"].items()}
        return Manifest(Source(**{key: str(text) for key, text in data["source"].items()}), files)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is no manifest of mlir-sched, or is damaged") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder."""
    replace_file(folder / MANIFEST, (json.dumps(asdict(manifest), indent=2) + "\n").encode())


def _samples(path: Path) -> Iterator[bytes]:
    """Yield the parts of a file that are read; a file of at most their size is read whole."""
    size = path.stat().st_size
    last = max(0, size - SAMPLE_BYTES)
    with path.open("rb") as file:
        if size <= SAMPLES * SAMPLE_BYTES:
            yield file.read()
            return
        for number in range(SAMPLES):
            file.seek(last * number // (SAMPLES - 1))
            yield file.read(SAMPLE_BYTES)
