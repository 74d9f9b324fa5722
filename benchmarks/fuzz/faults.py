"""Lets the machine fail in the middle of whole runs: ``python -m benchmarks fuzz.faults [--only NAME ...]``.

Each run tunes a small model in a folder of its own. Once its first candidates are stored, a fault strikes: a disk is
full, another process holds the store, a process of the run is killed or stands still, another run wants the folder or
the store. The run has to end with an exit code that its fault allows, without a traceback, with a whole result or none,
and with every candidate stored once and none of them blamed for the fault. Where a fault stops a run, the next run has
to go on and end well. Ends with exit code 1 where this does not hold.

Disks are file systems in memory, which the command mounts in a name space of its own (``unshare``).
"""

import argparse
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.fuzz.ending import complaint
from benchmarks.tool.kills import count_records, rows, stored_twice, why_not_whole

MODEL = """
func.func @main(%x: tensor<96x160xf32>, %w: tensor<160x128xf32>) -> tensor<96x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<96x128xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<96x128xf32>) -> tensor<96x128xf32>
  %product = linalg.matmul ins(%x, %w : tensor<96x160xf32>, tensor<160x128xf32>)
    outs(%filled : tensor<96x128xf32>) -> tensor<96x128xf32>
  %softmax = linalg.softmax dimension(1) ins(%product : tensor<96x128xf32>) outs(%empty : tensor<96x128xf32>)
    -> tensor<96x128xf32>
  return %softmax : tensor<96x128xf32>
}
"""
TRIALS = 48
BEGUN = 4
"""Records in the store from which a search has begun."""
DISK_MB = 400
"""Size of a disk; a run asks for less before it begins."""
PAUSE_S = 60.0
"""Seconds that a store is held, or a process stands still."""
LIMIT_S = 420.0
"""Seconds of a run; an undisturbed one takes less than 40."""
BLAMED = ("compile_crash", "compile_timeout", "run_crash", "run_timeout", "run_error")
"""Classes of failures that a fault of the machine looks like; no candidate of the model meets one of them."""


@dataclass
class FaultedRun:
    """A run that is being tried.

    Attributes:
        folder: Where the model and the result are.
        process: The command.
        others: Further commands that the fault started, each with the exit codes that are allowed.
    """

    folder: Path
    process: subprocess.Popen[bytes]
    others: list[tuple[subprocess.Popen[bytes], tuple[int, ...]]] = field(default_factory=list)

    @property
    def result(self) -> Path:
        """The folder of the result."""
        return self.folder / "tuned"

    def children(self, module: str) -> list[psutil.Process]:
        """Return the processes of the run that execute a module."""
        with suppress(psutil.NoSuchProcess):
            found = psutil.Process(self.process.pid).children(recursive=True)
            return [each for each in found if module in " ".join(each.cmdline())]
        return []


@dataclass(frozen=True)
class Fault:
    """A fault of the machine.

    Attributes:
        name: Its name.
        strike: Makes it happen to a run whose search has begun.
        codes: Exit codes that are allowed.
        disk: Folder of the run that is a small disk of its own: "tuned", "temporary" or "" for none.
    """

    name: str
    strike: Callable[[FaultedRun], None]
    codes: tuple[int, ...] = (0,)
    disk: str = ""


def _fill(run: FaultedRun, disk: str) -> None:
    with suppress(OSError), (run.folder / disk / "filler").open("wb") as file:
        while True:
            file.write(bytes(1 << 16))


def _hold_store(run: FaultedRun) -> None:
    with closing(sqlite3.connect(run.result / "records.sqlite", timeout=60, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        time.sleep(PAUSE_S)
        database.execute("ROLLBACK")


def _kill(run: FaultedRun, module: str) -> None:
    """Kill a process of the run three times, as the system does that has no memory left."""
    for _ in range(3):
        for each in run.children(module)[:1]:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        time.sleep(2.0)


def _stop(run: FaultedRun, module: str) -> None:
    stopped = run.children(module)
    for each in stopped:
        each.send_signal(signal.SIGSTOP)
    time.sleep(PAUSE_S)
    for each in stopped:
        with suppress(psutil.NoSuchProcess):
            each.send_signal(signal.SIGCONT)


def _run_again(run: FaultedRun, codes: tuple[int, ...], *options: str) -> None:
    run.others.append((_begun(run.folder, "second.log", *options), codes))


RUNNER, COMPILER = "mlir_sched.runner.worker.server", "mlir_sched.compiler.worker.main"
FAULTS = (
    Fault("full disk of results", lambda run: _fill(run, "tuned"), (1,), "tuned"),
    Fault("full disk of temporary files", lambda run: _fill(run, "temporary"), (1,), "temporary"),
    Fault("store held for a minute", _hold_store),
    Fault("compilers killed", lambda run: _kill(run, COMPILER)),
    Fault("runner killed", lambda run: _kill(run, RUNNER)),
    Fault("runner stands still", lambda run: _stop(run, RUNNER)),
    Fault("compilers stand still", lambda run: _stop(run, COMPILER)),
    Fault("second run on the folder", lambda run: _run_again(run, (2,))),
    Fault(
        "second run on the store", lambda run: _run_again(run, (0,), "-o", "other", "--store", "tuned/records.sqlite")
    ),
)


def problems_of(fault: Fault, folder: Path) -> list[str]:
    """Let a fault strike a run in a folder, and return what must not be."""
    (folder / "model.mlir").write_text(MODEL)
    with _disk(folder, fault.disk):
        run = FaultedRun(folder, _begun(folder, "first.log"))
        if not _has_begun(run):
            return [f"the run ended before the fault: {_said(folder, 'first.log')}"]
        fault.strike(run)
        problems = ended(run.process, folder, "first.log", fault.codes)
        for other, codes in run.others:
            problems += ended(other, folder, "second.log", codes)
        if run.process.returncode == 1:
            problems += _goes_on(fault, run)
        return [*problems, *stored_problems(run.result)]


def _goes_on(fault: Fault, run: FaultedRun) -> list[str]:
    """Return why a run that a fault stopped does not go on once the fault is gone; empty where it does."""
    if fault.disk:
        (run.folder / fault.disk / "filler").unlink(missing_ok=True)
    return [f"next run: {text}" for text in ended(_begun(run.folder, "next.log"), run.folder, "next.log", (0,))]


def stored_problems(result: Path) -> list[str]:
    """Return what is wrong with the records and the result of a run, in the folder of the result."""
    problems = [*why_not_whole(result), *stored_twice(result)]
    blamed = rows(result, "SELECT failure, count(*) FROM records WHERE failure IS NOT NULL GROUP BY failure")
    return problems + [f"{count} candidates are stored as {kind}" for kind, count in blamed if kind in BLAMED]


def _begun(folder: Path, log: str, *options: str) -> subprocess.Popen[bytes]:
    (folder / "temporary").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "mlir_sched.cli", "tune", "model.mlir", "--trials", str(TRIALS), "--threads", "1"]
    environment = {**os.environ, "TMPDIR": str(folder / "temporary")}
    with (folder / log).open("wb") as file:
        return subprocess.Popen([*command, *options], cwd=folder, env=environment, stdout=file, stderr=file)


def _has_begun(run: FaultedRun) -> bool:
    """Wait until a run has its first records; say whether it has any before it ends."""
    while run.process.poll() is None:
        if count_records(run.result) >= BEGUN:
            return True
        time.sleep(0.2)
    return False


def ended(process: subprocess.Popen[bytes], folder: Path, log: str, codes: tuple[int, ...]) -> list[str]:
    """Wait for a command, and return what is not allowed of how it ended."""
    try:
        code = process.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return [f"no end after {LIMIT_S:.0f} s"]
    said = (folder / log).read_text(errors="replace")
    wrong = complaint(code, said) or ("" if code in codes else f"ended with {code}")
    return [f"{wrong}: {_said(folder, log)}"] if wrong else []


def _said(folder: Path, log: str) -> str:
    """Return the last line that a command wrote."""
    return ((folder / log).read_text(errors="replace").strip().splitlines() or ["nothing"])[-1]


@contextmanager
def _disk(folder: Path, name: str) -> Iterator[None]:
    """Make a folder of a run a disk of its own."""
    if not name:
        yield
        return
    (folder / name).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder / name)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder / name)], check=True)


def main(arguments: Sequence[str]) -> int:
    """Let every fault strike a run and print what must not be."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fuzz.faults", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[fault.name for fault in FAULTS], metavar="NAME")
    parser.add_argument("--keep", type=Path, help="folder for the runs with problems")
    chosen = parser.parse_args(arguments)
    bad = 0
    for fault in (fault for fault in FAULTS if not chosen.only or fault.name in chosen.only):
        with tempfile.TemporaryDirectory() as temporary:
            start, problems = time.monotonic(), problems_of(fault, Path(temporary))
            said = _said(Path(temporary), "first.log")
            print(f"{fault.name}: {'; '.join(problems) or 'as it should be'} ({time.monotonic() - start:.0f} s)")
            print(f"  {said}", flush=True)
            bad += bool(problems)
            if problems and chosen.keep:
                shutil.copytree(temporary, chosen.keep / fault.name.replace(" ", "-"), dirs_exist_ok=True)
    return int(bad > 0)


if __name__ == "__main__":
    if "MLIR_SCHED_OWN_MOUNTS" not in os.environ:
        os.environ["MLIR_SCHED_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "-rm", sys.executable, "-m", "benchmarks.fuzz.faults", *sys.argv[1:]])
    sys.exit(main(sys.argv[1:]))
