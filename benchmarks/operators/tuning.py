"""What a tuning took, kept beside what it made, so that a later run measures that again without tuning anew.

The environments of all frameworks import this file: it needs Python only.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

_FILE = "tuning.json"


@dataclass(frozen=True)
class Tuning:
    """What tuning took: trials and seconds."""

    trials: int
    seconds: float

    def keep(self, folder: Path) -> None:
        """Mark what lies in a folder as finished."""
        (folder / _FILE).write_text(json.dumps(asdict(self)))


def kept_tuning(folder: Path) -> Tuning | None:
    """Return what the tuning in a folder took; None when none has finished there."""
    path = folder / _FILE
    return Tuning(**json.loads(path.read_text())) if path.exists() else None
