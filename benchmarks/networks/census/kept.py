"""The censuses of networks in a file, so that a run that was killed goes on: what is in the file is not done again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.networks.census.counting import ProgramCensus
from benchmarks.networks.comparison import Result
from mlir_sched.errors import UserError
from mlir_sched.tuned_folder.replaced_file import replace_file

AS_IT_IS, REWRITTEN, TUNED = "untuned", "rewritten", "tuned"
"""The programs of a network: as ``iree-compile`` compiles it, with the most rewrites but no scripts, and as emitted."""
_VERSION = 1


@dataclass(frozen=True)
class NetworkCensus:
    """The census of a network.

    Attributes:
        network: Its name.
        programs: The census of each of its programs, by :data:`AS_IT_IS`, :data:`REWRITTEN` and :data:`TUNED`.
        left_out: Why further programs do not compile, by the names of their variants.
        internal_errors: mlir-sched's own errors, a line each.
        compared: The comparison with engines; None where there was none.
    """

    network: str
    programs: Mapping[str, ProgramCensus]
    left_out: Mapping[str, str] = field(default_factory=dict)
    internal_errors: tuple[str, ...] = ()
    compared: Result | None = None

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> NetworkCensus:
        """Return a census from the dictionary of its attributes."""
        return NetworkCensus(
            data["network"],
            {name: ProgramCensus.from_json(program) for name, program in data["programs"].items()},
            data["left_out"],
            tuple(data["internal_errors"]),
            Result.from_json(data["compared"]) if data["compared"] else None,
        )

    @property
    def last(self) -> tuple[str, ProgramCensus]:
        """The program that is furthest on, with its name."""
        return next((name, self.programs[name]) for name in (TUNED, REWRITTEN, AS_IT_IS) if name in self.programs)


def kept_censuses(path: Path, setting: Mapping[str, Any]) -> dict[str, NetworkCensus]:
    """Return the censuses in a file by the names of their networks; none where there is no file.

    Raises:
        UserError: The file is not one of censuses, or one with another setting.
    """
    try:
        data = json.loads(path.read_text()) if path.exists() else None
        if data is None:
            return {}
        if data["version"] == _VERSION and data["setting"] == dict(setting):
            return {each["network"]: NetworkCensus.from_json(each) for each in data["networks"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not a file of censuses ({error}); name another file") from error
    raise UserError(f"{path}: it holds censuses with {data['setting']}, not with {dict(setting)}; name another file")


def keep_censuses(path: Path, setting: Mapping[str, Any], found: Mapping[str, NetworkCensus]) -> None:
    """Write censuses into a file, whole or not at all."""
    data = {"version": _VERSION, "setting": dict(setting), "networks": [asdict(each) for each in found.values()]}
    replace_file(path, json.dumps(data, indent=1).encode())
