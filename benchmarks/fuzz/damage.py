"""Damages the files that commands read, and looks at how they end: ``python -m benchmarks fuzz.damage --mutants 200``.

One small model is tuned first. Each mutant is a copy of it in which one file is damaged: the model as text or bytecode,
its inputs, a file of the tuned folder, the record store. A command that reads the file has to work, or to end with exit
code 1 or 2 and one line; nothing may hang, and no file may be lost. Ends with exit code 1 where this does not hold,
and keeps the damaged file.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from iree.compiler import ir
from rich.progress import track

from benchmarks.fuzz.ending import complaint, contents, lost

LONGEST = 64
"""Most bytes that are overwritten, removed or doubled at once."""
LIMIT_S = 240.0
"""Seconds of a command; a run on the small model takes about 20."""
MODEL = """
func.func @main(%x: tensor<8x17xf32>) -> tensor<8x17xf32> {
  %empty = tensor.empty() : tensor<8x17xf32>
  %softmax = linalg.softmax dimension(1) ins(%x : tensor<8x17xf32>) outs(%empty : tensor<8x17xf32>) -> tensor<8x17xf32>
  return %softmax : tensor<8x17xf32>
}
"""
SHORT = ("--trials", "1", "--threads", "1", "-o", "again")
FOLDER = (
    ("inspect", "tuned"), ("compile", "model.mlir", "--tuned", "tuned", "-o", "model.vmfb"), ("relocate", "tuned"),
    ("replay", "tuned", "model.mlir"), ("tune", "model.mlir", "--trials", "1", "--threads", "1"),
)  # fmt: skip
READERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "model.mlir": (("tune", "model.mlir", *SHORT), ("compile", "model.mlir", "--tuned", "tuned", "-o", "model.vmfb")),
    "model.mlirbc": (("tune", "model.mlirbc", *SHORT), ("replay", "tuned", "model.mlirbc")),
    "x.npy": (("tune", "model.mlir", "--input", "@x.npy", *SHORT),),
    "tuned/flags.txt": FOLDER,
    "tuned/library.mlir": (*FOLDER, ("inspect", "tuned/library.mlir")),
    "tuned/summary.json": FOLDER,
    "tuned/.manifest.json": FOLDER,
    "tuned/records.sqlite": (
        ("inspect", "tuned/records.sqlite"),
        ("tune", "model.mlir", "--trials", "1", "--threads", "1"),
    ),
}
"""The commands that read each file."""
WRITTEN = {"tune": ("tuned/",), "relocate": ("tuned/flags.txt", "tuned/.manifest.json"), "compile": ("model.vmfb",)}
"""What a command that works may replace."""


@dataclass(frozen=True)
class Ending:
    """How a command ended that read a damaged file.

    Attributes:
        seed: Seed of the damage.
        file, command: The file, and the command.
        code: Its exit code.
        problem: What is not allowed of it; empty when all is.
        said: The last line that it wrote.
    """

    seed: int
    file: str
    command: tuple[str, ...]
    code: int
    problem: str
    said: str


def main() -> int:
    """Damage files and print how commands ended."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fuzz.damage", description=__doc__)
    parser.add_argument("--mutants", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--keep", type=Path, default=Path("damaged"), help="folder for the files of problems")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        whole = made(Path(temporary) / "whole")
        seeds = range(arguments.first, arguments.first + arguments.mutants)
        found = [ending(whole, Path(temporary) / "copy", seed, arguments.keep) for seed in track(seeds, "mutants")]
    for code, count in sorted(Counter(each.code for each in found).items()):
        print(f"{count:5} ended with {code}")
    for each in found:
        if each.problem:
            print(f"seed {each.seed}: {each.file}: {' '.join(each.command)}: {each.problem}: {each.said}")
    return int(any(each.problem for each in found))


def made(folder: Path) -> Path:
    """Return a folder with a model in both forms, inputs, and the result of a run on it."""
    folder.mkdir(parents=True)
    (folder / "model.mlir").write_text(MODEL)
    with ir.Context(), ir.Location.unknown(), (folder / "model.mlirbc").open("wb") as file:
        ir.Module.parse(MODEL).operation.write_bytecode(file)
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(8, 17)).astype(np.float32))
    done = called(folder, ("tune", "model.mlir", "--trials", "4", "--threads", "1"))
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return folder


def ending(whole: Path, folder: Path, seed: int, keep: Path) -> Ending:
    """Damage a file in a copy and return how a command ended that reads it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    rng = np.random.default_rng([seed, 1])
    file = sorted(READERS)[seed % len(READERS)]
    command = READERS[file][int(rng.integers(len(READERS[file])))]
    (folder / file).write_bytes(damaged((whole / file).read_bytes(), seed))
    before = contents(folder)
    try:
        done = called(folder, command)
    except subprocess.TimeoutExpired:
        return _kept(Ending(seed, file, command, -1, f"no end after {LIMIT_S:.0f} s", ""), folder, keep)
    problem = complaint(done.returncode, done.stderr) or lost(
        _untouchable(before, command, done.returncode), contents(folder)
    )
    said = (done.stderr.strip().splitlines() or [""])[-1]
    return _kept(Ending(seed, file, command, done.returncode, problem, said), folder, keep)


def damaged(content: bytes, seed: int) -> bytes:
    """Return a content with one kind of damage at a random place, as broken transfers, disks and editors do it.

    It is never the same content, unless that is empty.
    """
    rng = np.random.default_rng(seed)
    place, length = (int(rng.integers(most)) for most in (max(1, len(content)), LONGEST))
    before, part, after = content[:place], content[place : place + length + 1], content[place + length + 1 :]
    bits = bytes(byte ^ (1 << int(rng.integers(8))) for byte in part)
    ways = (
        before,
        before + bits[:1] + part[1:] + after,
        before + bits + after,
        before + rng.bytes(len(part)) + after,
        before + bytes(len(part)) + after,
        before + after,
        before + part + part + after,
    )
    chosen = ways[int(rng.integers(len(ways)))]
    return chosen if chosen != content else before


def called(folder: Path, command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run a command of mlir-sched in a folder."""
    line = [sys.executable, "-m", "mlir_sched.cli", *command]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def _untouchable(before: dict[str, str], command: tuple[str, ...], code: int) -> dict[str, str]:
    """Return the files that a command has to leave as they are: all of them where it refuses its input."""
    written = () if code == 2 else WRITTEN.get(command[0], ())
    return {name: digest for name, digest in before.items() if not name.startswith(written or ("\0",))}


def _kept(found: Ending, folder: Path, keep: Path) -> Ending:
    """Keep the damaged file of a problem."""
    if found.problem:
        keep.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / found.file, keep / f"{found.seed}-{Path(found.file).name}")
    return found
