"""The results of slow baselines, in files that all runner processes of a run find: one call shows that they still hold.

A program whose call takes seconds is compared with in several processes of a run, and each would call it on all inputs.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from dataclasses import dataclass, replace
from pathlib import Path

from mlir_sched.runner.checks.check import Check
from mlir_sched.runner.protocol import Prepare
from mlir_sched.tensors.element_types import Array

MOST_BYTES = 2**28
"""Most bytes of results in the folder, which may be in memory: as many as the results inside of one program may have
(``program/checking/inside.py``)."""
_NAME = "references-"


@dataclass(frozen=True)
class KnownResults:
    """The results of a baseline in all of its checks.

    Attributes:
        checks: The checks as they were made: some with other inputs than were wanted.
        results: The results in each of them.
        overwritten: Positions of the inputs that the baseline changes.
    """

    checks: tuple[Check, ...]
    results: tuple[tuple[Array, ...], ...]
    overwritten: frozenset[int]

    @property
    def bytes(self) -> int:
        """Size of the results in bytes."""
        return sum(array.nbytes for arrays in self.results for array in arrays)


class KeptReferences:
    """The results that processes of a run keep for each other.

    Args:
        folder: Where the files are; None where nothing is kept.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def find(self, name: str) -> KnownResults | None:
        """Return the results that are kept by a name; None where there are none, or they cannot be read."""
        if self._folder is None:
            return None
        try:
            known: KnownResults = pickle.loads((self._folder / name).read_bytes())
        except OSError:
            return None
        return known

    def keep(self, name: str, results: KnownResults) -> None:
        """Keep results by a name as long as there is room, in the limit and on the disk."""
        if self._folder is None:
            return
        part = self._folder / f"{name}.{os.getpid()}"
        try:
            for left in self._folder.glob(f"{name}.*"):  # by a process that died meanwhile
                left.unlink()
            if results.bytes + sum(file.stat().st_size for file in self._folder.glob(f"{_NAME}*")) <= MOST_BYTES:
                part.write_bytes(pickle.dumps(results))
                part.replace(self._folder / name)
        except OSError:
            part.unlink(missing_ok=True)

    @staticmethod
    def name_of(request: Prepare) -> str:
        """Return the name for a baseline's results in its checks, with the weights as they are now."""
        weights = [Path(file.path).stat() for file in request.baseline.parameters]
        rest = replace(request, baseline=replace(request.baseline, vmfb=b""))
        digest = hashlib.sha256(request.baseline.vmfb)
        digest.update(repr([rest, [(file.st_size, file.st_mtime_ns) for file in weights]]).encode())
        return f"{_NAME}{digest.hexdigest()}"
