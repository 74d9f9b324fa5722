"""The file with the tracebacks of mistakes of ours that cost a dispatch or a candidate, where a user finds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

INTERNAL_ERRORS = "internal-errors.log"
"""Its name in the output folder."""


@dataclass
class ErrorLog:
    """Keeps every text once, in the order in which they came.

    Attributes:
        folder: Where the file is written; None for nowhere.
    """

    folder: Path | None
    _texts: dict[str, None] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """Keep a text, at once."""
        self._texts[text] = None
        if self.folder is not None:
            (self.folder / INTERNAL_ERRORS).write_text("\n".join(self._texts))
