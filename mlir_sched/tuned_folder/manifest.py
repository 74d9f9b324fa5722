"""The manifest of a tuned folder: the proof that its files are a result of ours, and of which model.

The manifest has digests of content, so that an edit and a file of somebody else are told from what was written. While a
file is replaced, the manifest has the digests of both contents: a writer that is killed at any instant leaves a folder
whose files are all known.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from mlir_sched.errors import UserError
from mlir_sched.tuned_folder.names import MANIFEST
from mlir_sched.tuned_folder.replaced_file import replace_file


@dataclass(frozen=True)
class Source:
    """What a result was made from.

    Attributes:
        model: Digest of the model (``model_digest.py``), equal wherever the model's files lie.
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


def manifest_of(folder: Path, source: Source, names: Iterable[str]) -> Manifest:
    """Return the manifest of those files of a folder that have the given names, as they are."""
    present = (folder / name for name in sorted(names))
    return Manifest(source, {path.name: (content_digest(path),) for path in present if path.is_file()})


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
