"""The cost of tuning an operator, kept in a file, so that a later run can measure again without tuning again.

The environments of all frameworks import this file: it needs Python only.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

_FILE = "tuning.json"


@dataclass(frozen=True)
class Tuning:
    """The cost of tuning: trials and seconds, summed over all processes that took part."""

    trials: int
    seconds: float

    def keep(self, folder: Path) -> None:
        """Mark the tuning in a folder as finished, with this cost."""
        (folder / _FILE).write_text(json.dumps(asdict(self)))


def kept_tuning(folder: Path) -> Tuning | None:
    """Return the cost of the tuning in a folder; None when no tuning has finished there."""
    path = folder / _FILE
    return Tuning(**json.loads(path.read_text())) if path.exists() else None


class Clock:
    """A clock that sums the seconds which successive processes spend on one job; a context manager.

    A thread writes the sum to a file once per ``tick_s``, so that the time of a process that is killed counts up to the
    last write.

    Args:
        path: File of the sum.
        tick_s: Seconds between two writes.
    """

    def __init__(self, path: Path, *, tick_s: float = 1.0) -> None:
        self._path, self._tick_s = path, tick_s
        self._earlier_s = float(self._path.read_text()) if self._path.exists() else 0.0
        self._start = time.monotonic()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def seconds(self) -> float:
        """Seconds of all processes so far, this one's included."""
        return self._earlier_s + time.monotonic() - self._start

    def __enter__(self) -> Clock:
        self._start = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._write()

    def _run(self) -> None:
        while not self._stopped.wait(self._tick_s):
            self._write()

    def _write(self) -> None:
        new = self._path.with_name(f"{self._path.name}.new")
        new.write_text(repr(self.seconds))
        new.replace(self._path)
