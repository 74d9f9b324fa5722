"""One session: every framework tuned with one seed, started afresh, and all sampled in turns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures.roofline import Roofline
from benchmarks.figures.sampling import Samples
from benchmarks.peers.tuning import Tuning

_FILE = "session.json"
VERSION = 2


@dataclass(frozen=True)
class Session:
    """The results of one operator with one seed.

    Attributes:
        seed: Seed of the searches and of the order of samples.
        samples: The samples of all ways, empty calls included.
        tuning: Trials and seconds of tuning, by column.
        notes: What is missing and why, one sentence each.
        flops, moved_bytes: Operations that the operator has to do, and bytes that it has to move.
        roofline: The ceilings of the cores, measured right after the samples.
    """

    seed: int
    samples: tuple[Samples, ...]
    tuning: Mapping[str, Tuning]
    notes: tuple[str, ...]
    flops: int
    moved_bytes: int
    roofline: Roofline

    def empty_of(self, call: Samples) -> Samples:
        """Return the samples of the empty call that belongs to the column of a call."""
        empties = {s.timed.label: s for s in self.samples if s.timed.empty and _peer(s) == _peer(call)}
        return empties.get(call.timed.label) or empties[""]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Session:
        return Session(
            data["seed"],
            tuple(map(Samples.from_json, data["samples"])),
            {label: Tuning.from_json(tuning) for label, tuning in data["tuning"].items()},
            tuple(data["notes"]),
            data["flops"],
            data["moved_bytes"],
            Roofline.from_json(data["roofline"]),
        )


def keep_session(session: Session, folder: Path, setting: Mapping[str, Any]) -> None:
    """Write a session and its setting into a folder."""
    data = {"version": VERSION, "setting": dict(setting), "session": session.to_json()}
    (folder / _FILE).write_text(json.dumps(data))


def kept_session(folder: Path, setting: Mapping[str, Any]) -> Session | None:
    """Return the session kept in a folder; None when the folder has none, or one with another setting or version."""
    path = folder / _FILE
    data = json.loads(path.read_text()) if path.exists() else {}
    if data.get("version") != VERSION or data["setting"] != dict(setting):
        return None
    return Session.from_json(data["session"])


def _peer(samples: Samples) -> str:
    return samples.timed.peer
