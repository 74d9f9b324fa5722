"""A command line in a folder of its own, and a folder that was tuned once for all tests."""

import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import COMMAND, MODEL, TRIALS, Cli, Ended


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, short_sessions: None
) -> Cli:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.mlir").write_text(MODEL)
    return Cli(tmp_path, capsys)


@pytest.fixture(scope="session")
def tuned(processes: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """A folder with model.mlir tuned into tuned/, and how the command ended that did it."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "model.mlir").write_text(MODEL)
    done = subprocess.run(
        [*COMMAND, "tune", "model.mlir", "--trials", str(TRIALS), "--threads", "1", "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return folder, Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def copied(tuned: tuple[Path, Ended], cli: Cli) -> Path:
    """A copy of the tuned folder whose flags name the copy's library."""
    source, copy = tuned[0] / "tuned", cli.folder / "tuned"
    shutil.copytree(source, copy)
    flags = (copy / "flags.txt").read_text().replace(str(source.resolve()), str(copy.resolve()))
    (copy / "flags.txt").write_text(flags)
    return copy
