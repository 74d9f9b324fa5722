"""What the workers of a run of the tests share is made once, and again after a failure."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, ClassVar

import pytest
from kept_workers import KeptWorkers
from shared_work import SharedExtractions, made_once

from mlir_sched.tasks import Model

FLAGS = ("--iree-opt-level=O3",)


class MadeUp:
    """A worker whose jobs end once two of them are under way."""

    made: ClassVar[list[MadeUp]] = []
    together = Barrier(2)

    def __init__(self, flags: tuple[str, ...]) -> None:
        self.flags, self.killed = flags, False
        self.made.append(self)

    def submit(self, job: str, *arguments: Any) -> None: ...

    def wait(self, limits: object) -> None:
        self.together.wait(10)

    def kill(self) -> None:
        self.killed = True


def test_jobs_at_once_have_a_worker_each_which_later_jobs_use_and_all_are_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kept_workers.Worker", MadeUp)
    kept = KeptWorkers()
    for _ in range(2):
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(lambda _: kept.run(FLAGS, "job"), range(2)))
    kept.close()
    assert [worker.killed for worker in MadeUp.made] == [True, True]


class Counting(KeptWorkers):
    """Workers that make up a model with the path that they are given, and count what they are asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.error: Exception | None = None

    def run(self, flags: tuple[str, ...], job: str, *arguments: Any, limits: Any = None) -> Model:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return Model(arguments[0], (), (), flags)


def extracted(folder: Path, workers: Counting, name: str, text: str = "module {}", flags: Any = FLAGS) -> Model:
    """Extract a program as another worker of the tests would: with the folder alone in common."""
    path = folder / name
    path.write_text(text)
    return SharedExtractions(workers, folder).run(flags, "job", str(path), flags, "", {}, {}, f"{path} at work", {})


def test_a_program_is_extracted_once_and_has_the_path_that_was_asked_for(tmp_path: Path) -> None:
    workers = Counting()
    models = [extracted(tmp_path, workers, name) for name in ("a.mlir", "b.mlir")]
    assert workers.asked == 1
    assert [model.path for model in models] == [str(tmp_path / "a.mlir"), str(tmp_path / "b.mlir")]


def test_another_text_and_other_flags_are_another_program(tmp_path: Path) -> None:
    workers = Counting()
    extracted(tmp_path, workers, "a.mlir")
    extracted(tmp_path, workers, "a.mlir", text="module @other {}")
    assert extracted(tmp_path, workers, "a.mlir", flags=()).flags == ()
    assert workers.asked == 3


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    workers = Counting()
    workers.error = RuntimeError("no memory")
    with pytest.raises(RuntimeError, match="no memory"):
        extracted(tmp_path, workers, "a.mlir")
    workers.error = None
    assert extracted(tmp_path, workers, "a.mlir").path
    assert workers.asked == 2


def test_a_folder_is_filled_once_and_after_a_failure_from_the_beginning(tmp_path: Path) -> None:
    made = list[int]()

    def make(folder: Path) -> None:
        made.append(len(list(folder.iterdir())))
        (folder / "half").touch()
        if len(made) == 1:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        made_once(tmp_path / "shared", make)
    for _ in range(2):
        assert (made_once(tmp_path / "shared", make) / "half").exists()
    assert made == [0, 0]
