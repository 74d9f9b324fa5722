"""A command under way, in a process and with a folder for temporary files of its own: it can be watched and killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

CLI = ("-m", "mlir_sched.cli")


@dataclass
class RunningCommand:
    """A command under way, with a folder for temporary files of its own.

    Attributes:
        process: The command.
        temporary: Its folder for temporary files.
        seen: All processes that were ever found below it.
    """

    process: subprocess.Popen[str]
    temporary: Path
    seen: set[psutil.Process]

    def wait_for(self, moment: Callable[[RunningCommand], bool]) -> None:
        """Wait until it does something."""
        deadline = time.monotonic() + 120
        while not moment(self):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.002)

    def children(self) -> list[str]:
        """Return the command lines of the processes below it."""
        lines = []
        with suppress(psutil.Error):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                self.seen.add(child)
                lines.append(" ".join(child.cmdline()))
        return lines

    def runs(self, program: str) -> bool:
        """Say whether there is a process of a program below it."""
        return any(program in line and "launch_program" not in line for line in self.children())

    def says(self, text: str) -> bool:
        """Say whether it has written a text to its standard error."""
        return text in (self.temporary.parent / "stderr").read_text()

    def assert_nothing_is_left(self) -> None:
        """Require that its processes end and that its temporary files are gone."""
        self.assert_no_process_is_left()
        assert list(self.temporary.iterdir()) == []

    def assert_no_process_is_left(self) -> None:
        """Require that its processes end."""
        _, alive = psutil.wait_procs(self.seen, timeout=10)
        assert [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE] == []


def start(folder: Path, *arguments: str, program: Sequence[str] = CLI) -> RunningCommand:
    """Start a command of ``mlir-sched``, or a Python program that takes its arguments, in a folder."""
    (folder / "temporary").mkdir(exist_ok=True)
    with (folder / "stderr").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            cwd=folder,
            env=os.environ | {"TMPDIR": str(folder / "temporary")},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    return RunningCommand(process, folder / "temporary", set())
