"""Tunes random programs and judges them by NumPy: ``python -m benchmarks fuzz --programs 500``.

Programs whose seeds are in the file of judgements are not tuned again, so that many can be done in several goes.
Ends with exit code 1 where a program meets an internal error, computes wrong numbers or has no record; its text is kept
beside the judgements.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from rich.progress import track

from benchmarks.figures.publishing import add_arguments, publishing_of
from benchmarks.fuzz.figures import lines, results_table
from benchmarks.fuzz.judge import Fate, Judgement
from benchmarks.fuzz.programs import random_program
from mlir_sched.targets import detect_target

LIMIT_S = 300.0
"""Seconds after which a program counts as one that hangs; a program takes 10 to 30."""


def main() -> int:
    """Judge programs and print what became of them."""
    parser = _parser()
    arguments = parser.parse_args()
    publishing, judgements = publishing_of(parser, arguments), arguments.judgements
    done = read_judgements(judgements)
    seeds = range(arguments.first, arguments.first + arguments.programs)
    with judgements.open("a") as file:
        for seed in track([seed for seed in seeds if seed not in done], "programs"):
            done[seed] = _judged(seed, arguments.trials)
            file.write(json.dumps(asdict(done[seed])) + "\n")
            file.flush()
            if done[seed].fate.is_fault:
                judgements.with_name(f"{judgements.stem}-{seed}.mlir").write_text(random_program(seed).text)
    found = [done[seed] for seed in seeds if seed in done]
    print("\n".join(lines(found)))
    if publishing:
        publishing.add(results_table(found, publishing), detect_target("llvm-cpu", 1))
    return int(any(each.fate.is_fault for each in found))


def read_judgements(path: Path) -> dict[int, Judgement]:
    """Return the judgements in a file by their seeds; none where there is no file."""
    text = path.read_text() if path.exists() else ""
    rows = [json.loads(line) for line in text.splitlines()]
    return {row["seed"]: Judgement(**{**row, "fate": Fate(row["fate"])}) for row in rows}


def _judged(seed: int, trials: int) -> Judgement:
    """Return what became of the program of a seed, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.fuzz.judge", str(seed), folder, str(trials)]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return Judgement(seed, Fate.INTERNAL, f"no end after {LIMIT_S:.0f} s")
    if ended.returncode != 0:
        return Judgement(seed, Fate.INTERNAL, ended.stderr[-2000:])
    row = json.loads(ended.stdout.splitlines()[-1])
    return Judgement(**{**row, "fate": Fate(row["fate"])})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=20, help="how many programs")
    parser.add_argument("--first", type=int, default=0, help="the first one's seed")
    parser.add_argument("--trials", type=int, default=6, help="candidates per program")
    parser.add_argument("--judgements", type=Path, default=Path("fuzz.jsonl"), help="file that judgements are added to")
    add_arguments(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
