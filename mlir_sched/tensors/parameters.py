"""Files that hold a model's weights outside of its program (``.irpa``, ``.safetensors``, ``.gguf``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlir_sched.errors import UserError


@dataclass(frozen=True)
class ParameterFile:
    """One file, as ``iree-run-module --parameters`` takes it.

    Attributes:
        scope: The scope under which the program names the file's tensors; may be empty.
    """

    scope: str
    path: str

    def __str__(self) -> str:
        return f"{self.scope}={self.path}"

    @staticmethod
    def parse(text: str) -> ParameterFile:
        """Return the file of ``scope=path``, or of a path alone, whose scope is empty."""
        scope, equals, path = text.partition("=")
        return ParameterFile(scope, path) if equals else ParameterFile("", scope)


def parameter_files(texts: Iterable[str]) -> tuple[ParameterFile, ...]:
    """Return the files that a user names, with absolute paths.

    Raises:
        UserError: A file does not exist.
    """
    files = []
    for text in texts:
        file = ParameterFile.parse(text)
        if not Path(file.path).is_file():
            raise UserError(f"--parameters {text}: {file.path}: no such file")
        files.append(ParameterFile(file.scope, str(Path(file.path).resolve())))
    return tuple(files)


def require_scopes(model: str, scopes: Iterable[str], files: Sequence[ParameterFile]) -> None:
    """Refuse a program whose weights are missing.

    Raises:
        UserError: A scope has no file.
    """
    missing = sorted(set(scopes) - {file.scope for file in files})
    if missing:
        wanted = " ".join(f"--parameters {scope}=FILE.irpa" for scope in missing)
        raise UserError(f"{model}: the program reads weights from a file that was not given; add {wanted}")
