"""What a run will need is tried before it begins: each planted fault is told in one line, and at once."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlir_sched.compiler import flags as flags_module
from mlir_sched.database import RecordStore
from mlir_sched.errors import UnusablePathError, UserError
from mlir_sched.preflight import require_what_is_needed
from mlir_sched.preflight import room as room_module
from mlir_sched.preflight.room import RECORD_BYTES, needs_of, require_room, require_scratch
from mlir_sched.processes import temporary
from mlir_sched.program import building
from mlir_sched.tuning.options import TuneOptions


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, for one test."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    use(folder, monkeypatch)
    return folder


def use(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have temporary files lie in a folder, as a process does that starts with ``TMPDIR``."""
    temporary.remove_session_folder()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


@pytest.fixture(autouse=True)
def no_folder_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the folder of this process, in which processes that other tests share have files, away from a test."""
    monkeypatch.setattr(temporary, "_own", [])
    yield
    temporary.remove_session_folder()


def refusal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    use(folder, monkeypatch)
    with pytest.raises(UserError) as refused:
        require_scratch()
    return str(refused.value)


@pytest.mark.parametrize("name", ["user@host", "a{b", b"caf\xe9".decode(errors="surrogateescape")])
def test_a_path_for_temporary_files_that_iree_does_not_take_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).mkdir()
    message = refusal(tmp_path / name, monkeypatch)
    assert message.startswith(f"{tmp_path / name}, for temporary files: IREE finds no library")
    assert message.endswith("set TMPDIR to another folder")
    assert "\n" not in message


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_tmpdir_without_a_folder_is_refused_though_python_takes_another_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    assert refusal(tmp_path / name, monkeypatch).startswith(f"{tmp_path / name}: temporary files cannot be written")


def test_usual_names_are_taken(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("with space", "a{b}c", "ümlaut", "quote'd"):
        (scratch / name).mkdir()
        use(scratch / name, monkeypatch)
        assert require_scratch() == scratch / name


def test_a_path_that_iree_does_not_take_is_no_fault_of_a_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: object) -> None:
        flags_module.library_flags(Path("/tmp/user@host/library.mlir"))

    monkeypatch.setattr(building, "build_variant", build)
    default = SimpleNamespace(not_run={}, tasks=())
    with pytest.raises(UnusablePathError, match="an @"):
        building.try_variant(Path(), None, None, (), default)  # type: ignore[arg-type]


def test_what_iree_refuses_costs_a_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: object) -> None:
        raise UserError("no")

    monkeypatch.setattr(building, "build_variant", build)
    default = SimpleNamespace(not_run={}, tasks=())
    attempt = building.try_variant(Path(), None, None, (), default)  # type: ignore[arg-type]
    assert attempt.why == "IREE does not compile it: no"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text("module {}")
    return path


def free(monkeypatch: pytest.MonkeyPatch, **bytes_of: int) -> None:
    """Have folders report free bytes, by name."""
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=bytes_of[folder.name]))


def apart(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Have folders lie on file systems of their own."""
    real = Path.stat

    def stat(path: Path, **options: bool) -> object:
        found = real(path, **options)
        if path not in folders:
            return found
        return os.stat_result((found.st_mode, found.st_ino, 10_000 + folders.index(path), *found[3:]))

    monkeypatch.setattr(Path, "stat", stat)


def test_each_file_system_has_room_for_what_is_written_there(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("scratch", "out", "records")]
    for folder in folders:
        folder.mkdir()
    apart(monkeypatch, *folders)
    needs = needs_of(model, folders[0], folders[1], folders[2] / "store.db", TuneOptions(trials=1000))
    assert [need.bytes for need in needs[1:]] == [room_module.FOLDER_BYTES, 1000 * RECORD_BYTES]
    plenty = {"scratch": needs[0].bytes, "out": needs[1].bytes, "records": needs[2].bytes}
    free(monkeypatch, **plenty)
    require_room(needs)
    for name, advice in (("scratch", "TMPDIR"), ("out", "-o"), ("records", "--store")):
        free(monkeypatch, **{**plenty, name: plenty[name] - 1})
        with pytest.raises(UserError, match=rf"^\S+/{name}: \d+ MiB free, and the run may write .*{advice}"):
            require_room(needs)


def test_needs_on_one_file_system_add_up(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = needs_of(model, tmp_path, tmp_path, tmp_path / "store.db", TuneOptions(trials=100))
    free(monkeypatch, **{tmp_path.name: max(need.bytes for need in needs)})
    with pytest.raises(UserError, match="of temporary files and the tuned folder and records"):
        require_room(needs)


def test_a_larger_model_and_a_longer_run_need_more(model: Path, tmp_path: Path) -> None:
    def needed(**options: float) -> int:
        made = replace(TuneOptions(), **options)  # type: ignore[arg-type]
        return sum(need.bytes for need in needs_of(model, tmp_path, tmp_path, tmp_path / "store.db", made))

    assert needed(minutes=30) > needed(minutes=5)
    small = needed(trials=10)
    model.write_bytes(bytes(1 << 20))
    assert needed(trials=10) >= small + (1 << 20)


def test_a_store_that_cannot_be_written_is_refused_and_one_that_can_stays_as_it_is(
    model: Path, scratch: Path, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    with RecordStore.open(path) as store:
        require_what_is_needed(model, None, store, TuneOptions(trials=1))
        tables = sqlite3.connect(path).execute("SELECT count(*) FROM sqlite_master").fetchone()
    with RecordStore.open(path, read_only=True) as store, pytest.raises(UserError, match="it cannot be written"):
        require_what_is_needed(model, None, store, TuneOptions(trials=1))
    assert sqlite3.connect(path).execute("SELECT count(*) FROM sqlite_master").fetchone() == tables


@pytest.mark.parametrize("name", [":memory:", "sqlite:///:memory:", b"caf\xe9.db".decode(errors="surrogateescape")])
def test_a_store_that_keeps_nothing_or_cannot_be_named_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError):
        RecordStore.open(name)
    assert list(tmp_path.iterdir()) == []
