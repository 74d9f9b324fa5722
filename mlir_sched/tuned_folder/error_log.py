"""The file in the output folder with the tracebacks of internal errors that cost a dispatch or a candidate."""

from dataclasses import dataclass, field
from pathlib import Path

from mlir_sched.tuned_folder.names import INTERNAL_ERRORS
from mlir_sched.tuned_folder.replaced_file import replace_file

HEADER = "# internal errors of mlir-sched tune; please report them\n"
"""First line of the file, by which a later run knows the file as its own."""


@dataclass
class ErrorLog:
    """A log that keeps every text once, in the order in which the texts came.

    Attributes:
        folder: Where the file is written; None when no file is written.
    """

    folder: Path | None
    _texts: dict[str, None] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """Keep a text and write the file at once."""
        self._texts[text] = None
        if self.folder is not None:
            replace_file(self.folder / INTERNAL_ERRORS, "\n".join((HEADER, *self._texts)).encode())


def is_error_log(path: Path) -> bool:
    """Say whether a file is the log of an earlier run."""
    return path.is_file() and path.read_bytes().startswith(HEADER.encode())
