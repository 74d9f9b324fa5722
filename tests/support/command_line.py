"""The command line as tests call it, in this process or another."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from folders import SUPPORT

from mlir_sched.cli import main

COMMAND = (sys.executable, str(SUPPORT / "short_sessions.py"))
TRIALS = 6
OPTIONS = ("--trials", str(TRIALS), "--threads", "1")
MODEL = """
func.func @main(%x: tensor<128x256xf32>) -> tensor<128x256xf32> {
  %empty = tensor.empty() : tensor<128x256xf32>
  %softmax = linalg.softmax dimension(1) ins(%x : tensor<128x256xf32>)
                                         outs(%empty : tensor<128x256xf32>) -> tensor<128x256xf32>
  return %softmax : tensor<128x256xf32>
}
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """What it said on stderr, without the progress."""
        lines = self.err.splitlines()
        starts = [i for i, line in enumerate(lines) if line.startswith(("error: ", "internal error: ", "interrupted"))]
        return "\n".join(lines[starts[0] :]) if starts else ""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, in a folder."""
    return subprocess.run([*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False)


class Cli:
    """Runs commands in this process, in a folder of their own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def __call__(self, *arguments: str | Path) -> Ended:
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    def refused(self, *arguments: str | Path) -> str:
        """Run a command that must be refused for the user's fault and return its message."""
        ended = self(*arguments)
        assert ended.code == 2, ended.err
        assert "Traceback" not in ended.err
        assert ended.out == ""
        assert 1 <= len(ended.message.splitlines()) <= 2, ended.err
        return ended.message
