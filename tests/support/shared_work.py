"""What is made once for all processes of one run of the tests: extracted programs and folders.

Workers of pytest-xdist are processes of their own; without a folder that they share, each makes the same again.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from kept_workers import KeptWorkers

from mlir_sched.compiler.version import compiler_version
from mlir_sched.compiler.worker_process import WorkerLimits
from mlir_sched.tasks import Model


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers of this run of the tests share, and no other run."""
    own = factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Return a folder that the first caller fills, while the others wait; what a failure leaves is made again."""
    finished = folder.with_name(f"{folder.name}.made")
    with _alone(folder):
        if not finished.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            finished.touch()
    return folder


class SharedExtractions:
    """Extracts every program once: one with the same text, flags, job and release of IREE is read from a file."""

    def __init__(self, workers: KeptWorkers, folder: Path) -> None:
        self._workers, self._folder = workers, folder

    def run(
        self,
        flags: tuple[str, ...],
        job: str,
        path: str,
        *arguments: Any,
        limits: WorkerLimits | None = None,
    ) -> Model:
        """Return the model of a file, in place of ``run_isolated`` in ``tasks/model.py``; a failure is not kept."""
        *decisive, at_work, skipped = arguments  # the file at_work is only read after a crash
        what = (compiler_version(), flags, job, Path(path).read_bytes(), decisive, skipped)
        kept = self._folder / f"{sha256(pickle.dumps(what)).hexdigest()}.model"
        with _alone(kept):
            if not kept.exists():
                model = self._workers.run(flags, job, path, *decisive, at_work, skipped, limits=limits)
                kept.write_bytes(pickle.dumps(model))
        found: Model = pickle.loads(kept.read_bytes())
        return replace(found, path=path)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from the same lines for the same path; the end of a process releases its lock."""
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
