"""Files are written whole or not at all, and what is no regular file stays what it is."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from mlir_sched.tuned_folder.replaced_file import left_temporaries, replace_file


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "file", tmp_path / "link"
    target.write_text("before")
    link.symlink_to("elsewhere/file")
    replace_file(link, b"after")
    assert link.is_symlink()
    assert target.read_text() == "after"
    target.unlink()
    replace_file(link, b"made")
    assert (link.is_symlink(), target.read_text()) == (True, "made")


def test_a_pipe_takes_the_content_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    replace_file(pipe, b"content")
    reader.join(5 if pipe.is_fifo() else 0)
    assert pipe.is_fifo()
    assert read == [b"content"]


def test_a_device_takes_the_content_and_stays_a_device(tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to(os.devnull)
    replace_file(tmp_path / "null", b"content")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    assert (tmp_path / "null").is_symlink()


def test_nothing_that_is_there_is_written_into_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlir_sched.tuned_folder.replaced_file.secrets.token_hex", lambda _: "0" * 16)
    planted, foreign = tmp_path / f".mlir-sched-{'0' * 16}.new", tmp_path / "foreign"
    foreign.write_text("foreign")
    planted.symlink_to(foreign)
    with pytest.raises(FileExistsError):
        replace_file(tmp_path / "file", b"content")
    assert foreign.read_text() == "foreign"
    assert not (tmp_path / "file").exists()


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError("no space left")

    (tmp_path / "file").write_text("before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        replace_file(tmp_path / "file", b"after")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "before"


def test_permissions_are_those_that_the_umask_leaves(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    replace_file(tmp_path / "file", b"")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_what_killed_writers_left_is_known_by_its_name(tmp_path: Path) -> None:
    left = tmp_path / f".mlir-sched-{'a1' * 8}.new"
    for path in (left, tmp_path / ".mlir-sched-notes.new", tmp_path / "file.new"):
        path.touch()
    assert left_temporaries(tmp_path) == [left]
