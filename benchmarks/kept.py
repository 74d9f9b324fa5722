"""Results in files, so that a run that was stopped goes on: what is in the file is not done again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from rich.progress import track

from mlir_sched.tuned_folder.replaced_file import replace_file

if TYPE_CHECKING:
    import cattrs

T = TypeVar("T")


@cache
def converter() -> cattrs.Converter:
    """Return what makes dataclasses of plain data; what is missing in the data is a ``KeyError``.

    It needs ``cattrs``, which programs that read nothing do without.
    """
    from cattrs.preconf.json import make_converter

    return make_converter(detailed_validation=False)


@dataclass(frozen=True)
class Kept(Generic[T]):
    """The results of a run in a file, with the setting under which they hold.

    Attributes:
        name: What the file calls them.
        kind: Their type.
        version: Of the file; one of another version is as good as none.
    """

    name: str
    kind: type[T]
    version: int

    def write(self, path: Path | None, results: T, setting: Mapping[str, Any]) -> None:
        """Write results, whole or not at all, if a file is named."""
        if path is not None:
            data = {"version": self.version, "setting": dict(setting), self.name: results}
            replace_file(path, json.dumps(data, default=asdict, indent=1).encode())

    def read(self, path: Path | None, setting: Mapping[str, Any]) -> T | None:
        """Return the results in a file; None where there is none, or one with another setting."""
        data = json.loads(path.read_text()) if path is not None and path.exists() else {}
        if data.get("version") != self.version or data["setting"] != dict(setting):
            return None
        return converter().structure(data[self.name], self.kind)


class Judged(Protocol):
    """What became of the program of a seed."""

    @property
    def seed(self) -> int:
        """The seed."""


J = TypeVar("J", bound=Judged)


def judged_once(
    path: Path, seeds: Sequence[int], kind: type[J], judge: Callable[[int], J], what: str, *, jobs: int = 1
) -> list[J]:
    """Return the judgements of seeds: those in a file, and for other seeds new ones, each added to the file at once.

    Args:
        path: The file, with a line of JSON per judgement.
        what: What is judged, in the plural.
        jobs: How many are judged at a time, each in a thread of its own.
    """
    text = path.read_text() if path.exists() else ""
    found = {each.seed: each for each in (converter().structure(json.loads(line), kind) for line in text.splitlines())}
    with path.open("a") as file, ThreadPoolExecutor(jobs) as threads:
        running = [threads.submit(judge, seed) for seed in seeds if seed not in found]
        try:
            for judged in (each.result() for each in track(as_completed(running), what, total=len(running))):
                found[judged.seed] = judged
                file.write(json.dumps(judged, default=asdict) + "\n")
                file.flush()
        finally:
            threads.shutdown(cancel_futures=True)
    return [found[seed] for seed in seeds]
