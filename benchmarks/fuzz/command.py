"""Tunes random programs and judges them by NumPy: ``python -m benchmarks fuzz --programs 500``.

Programs whose seeds are in the file of judgements are not tuned again, so that many can be done in several goes.
Ends with exit code 1 where a program meets an internal error, computes wrong numbers or has no record; its text is kept
beside the judgements.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import ResultColumn, ResultTable, Unit
from benchmarks.fuzz.judge import Fate, Judgement
from benchmarks.fuzz.programs import random_program
from benchmarks.kept import converter, judged_once

LIMIT_S = 300.0
"""Seconds after which a program counts as one that hangs; a program takes 10 to 30."""


def main() -> int:
    """Judge programs and print what became of them."""
    arguments, publishing = parsed(_parser())
    file = arguments.judgements

    def judge(seed: int) -> Judgement:
        found = _judged(seed, arguments.trials)
        if found.fate.is_fault:
            file.with_name(f"{file.stem}-{seed}.mlir").write_text(random_program(seed).text)
        return found

    seeds = range(arguments.first, arguments.first + arguments.programs)
    found = judged_once(file, seeds, Judgement, judge, "programs")
    print("\n".join(lines(found)))
    publishing.add(results_table(found, publishing))
    return int(any(each.fate.is_fault for each in found))


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
    return converter().structure(json.loads(ended.stdout.splitlines()[-1]), Judgement)


def lines(found: Sequence[Judgement]) -> list[str]:
    """Return the programs by what became of them, the failed candidates by class, and every fault."""
    failures = Counter[str]()
    for each in found:
        failures.update(each.failures)
    trials, named = sum(each.trials for each in found), ", ".join(f"{n} {name}" for name, n in failures.most_common())
    return [
        f"{len(found):5} programs",
        *(f"{count:5} {fate}" for fate, count in Counter(each.fate.value for each in found).most_common()),
        f"{trials:5} candidates; failed: {named or 'none'}",
        *(f"seed {each.seed}: {each.fate}: {_last_line(each.detail)}" for each in found if each.fate.is_fault),
    ]


def results_table(found: Sequence[Judgement], publishing: Publishing) -> ResultTable:
    """Return a table of results with a row for everything that became of a program."""
    return publishing.table(
        name="random-programs",
        question="faults",
        title=f"{len(found)} random programs",
        threads=1,
        seeds=[],
        interleaving="Each program beside NumPy's results",
        spread="none; counts",
        rows_are="outcome",
        columns={ResultColumn("programs", Unit.COUNT): lambda count: count},
        rows=Counter(each.fate.value for each in found).most_common(),
    )


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1].strip()


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("--programs", type=int, default=20, help="how many programs")
    parser.add_argument("--first", type=int, default=0, help="the first one's seed")
    parser.add_argument("--trials", type=int, default=6, help="candidates per program")
    parser.add_argument("--judgements", type=Path, default=Path("fuzz.jsonl"), help="file that judgements are added to")
    return parser
