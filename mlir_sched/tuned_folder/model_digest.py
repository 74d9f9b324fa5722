"""The identity of a model: what its files hold, wherever they lie."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlir_sched.tensors.parameters import ParameterFile
from mlir_sched.tuned_folder.manifest import content_digest

SAMPLES, SAMPLE_BYTES = 64, 1 << 16
"""Parts of a file with weights that are looked at, evenly spaced with both ends: 4 MiB, read within milliseconds
however large the file is. Weights of another training differ in nearly every part. Files that differ only between the
parts count as the same, so that the result of one may replace that of the other."""


def model_digest(model: Path, parameters: Sequence[ParameterFile]) -> str:
    """Return a SHA-256 of a model's file and of the scopes, sizes and samples of its weights, in hexadecimal."""
    digest = hashlib.sha256(content_digest(model).encode())
    for file in sorted(parameters, key=lambda file: file.scope):
        digest.update(f"\0{file.scope}\0{Path(file.path).stat().st_size}\0".encode())
        for part in _samples(Path(file.path)):
            digest.update(part)
    return digest.hexdigest()


def _samples(path: Path) -> Iterator[bytes]:
    """Yield the parts of a file that are looked at; a file of at most their size is read whole."""
    size = path.stat().st_size
    last = max(0, size - SAMPLE_BYTES)
    with path.open("rb") as file:
        if size <= SAMPLES * SAMPLE_BYTES:
            yield file.read()
            return
        for number in range(SAMPLES):
            file.seek(last * number // (SAMPLES - 1))
            yield file.read(SAMPLE_BYTES)
