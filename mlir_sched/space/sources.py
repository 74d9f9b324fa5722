"""The sources that scripts come from: records of equal sources are known to have the scripts that traces make today."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

from mlir_sched.transform_scripts.module import TransformModule

_PACKAGE = "mlir_sched"
_ROOT = Path(__file__).parents[1]
_OWN = ("transform_scripts", "space")
"""The packages that print scripts, beside the files of plain data; IREE's version is a part of the tasks' keys."""


def sources_digest(modules: Iterable[TransformModule]) -> str:
    """Return a digest of the sources of mlir-sched and of transform modules; empty where a source cannot be found.

    Of a module of others these are all files of the package that it lies in, or its file where that is in no package.
    What it imports from elsewhere does not count.
    """
    files = [*_ROOT.glob("*.py"), *(file for package in _OWN for file in (_ROOT / package).rglob("*.py"))]
    for name in sorted({type(module).__module__ for module in modules}):
        if name.split(".")[0] != _PACKAGE:
            found = _files_of(name)
            if not found:
                return ""
            files += found
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _files_of(name: str) -> list[Path]:
    """Return the source files that a Python module stands for; none where it is no file."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if module is None or file is None or not Path(file).is_file():
        return []
    return list(Path(file).parent.rglob("*.py")) if module.__package__ else [Path(file)]
