"""The file in the output folder with the tracebacks of internal errors that cost a dispatch or a candidate."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

INTERNAL_ERRORS = "internal-errors.log"
"""Name of the file in the output folder."""


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
            (self.folder / INTERNAL_ERRORS).write_text("\n".join(self._texts))
