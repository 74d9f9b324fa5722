"""A command line in a folder of its own, and a folder that was tuned once for all tests."""

import json
import shutil
from pathlib import Path

import pytest
from command_line import MODEL, OPTIONS, Cli, Ended, run
from shared_work import made_once


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, short_sessions: None
) -> Cli:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.mlir").write_text(MODEL)
    return Cli(tmp_path, capsys)


@pytest.fixture(scope="session")
def tuned(processes: None, shared: Path) -> tuple[Path, Ended]:
    """A folder with model.mlir tuned into tuned/, a user's store, and how the command ended that did it."""

    def tune(folder: Path) -> None:
        (folder / "model.mlir").write_text(MODEL)
        done = run(folder, "tune", "model.mlir", *OPTIONS, "--user-store", "user.sqlite", "--json")
        (folder / "ended.json").write_text(json.dumps([done.returncode, done.stdout, done.stderr]))

    folder = made_once(shared / "tuned", tune)
    return folder, Ended(*json.loads((folder / "ended.json").read_text()))


@pytest.fixture
def copied(tuned: tuple[Path, Ended], cli: Cli) -> Path:
    """A copy of the tuned folder whose flags name the copy's library."""
    source, copy = tuned[0] / "tuned", cli.folder / "tuned"
    shutil.copytree(source, copy)
    flags = (copy / "flags.txt").read_text().replace(str(source.resolve()), str(copy.resolve()))
    (copy / "flags.txt").write_text(flags)
    return copy
