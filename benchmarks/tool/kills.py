"""Kills a run at random moments, as a machine that loses power does, and lets it go on each time.

``python -m benchmarks kills MODEL.mlir [--parameters SCOPE=FILE] [--minutes 6] [--kills 10] [--longest 110]``. After
every kill (``SIGKILL`` of the command alone) no process of the run may be left, no record or decision of its store may
be lost or changed, and the folder may hold no result or a whole one. The last process runs to its end: its result has
to be checked, and no candidate may be stored twice. Ends with exit code 1 where one of this does not hold.
"""

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from rich.table import Table

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import Columns, ResultColumn, ResultTable, Unit, figure
from mlir_sched.outcome import Verdict
from mlir_sched.targets import detect_target
from mlir_sched.text import console, table
from mlir_sched.tuned_folder.folder import read_tuned_folder
from mlir_sched.tuned_folder.names import FLAGS

SHORTEST_S = 3.0
"""Least seconds that a process lives."""
PATIENCE_S = 10.0
"""Seconds after a kill in which the processes of the run have to end."""


@dataclass(frozen=True)
class Kill:
    """A kill.

    Attributes:
        after_s: Seconds that the process had lived.
        said: The last line that it had written.
        records: Records in the store afterwards.
        problems: What does not hold.
    """

    after_s: float
    said: str
    records: int
    problems: tuple[str, ...]


def begin(arguments: argparse.Namespace, log: Path) -> subprocess.Popen[bytes]:
    """Start the run, or go on with it."""
    options = ["--minutes", arguments.minutes, "--seed", arguments.seed, "-o", arguments.folder, "--json"]
    for file in arguments.parameters:
        options += ["--parameters", file]
    if arguments.threads:
        options += ["--threads", arguments.threads]
    command = [sys.executable, "-m", "mlir_sched.cli", "tune", *map(str, [arguments.model, *options])]
    with log.open("wb") as errors:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)


def kill(process: subprocess.Popen[bytes], after_s: float, folder: Path, log: Path, stored: set[Any]) -> Kill | None:
    """Kill a process after some seconds and say what was found; None when it had ended by then."""
    start = time.monotonic()
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        pass
    else:
        return None
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    lived_s, problems = time.monotonic() - start, list[str]()
    _, alive = psutil.wait_procs(children, PATIENCE_S)
    left = [each for each in alive if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    problems += [f"process {each.pid} is left: {' '.join(each.cmdline()[:4])}" for each in left]
    now = kept(folder)
    if lost := stored - now:
        problems.append(f"{len(lost)} rows of the store were lost or changed")
    problems += why_not_whole(folder)
    said = log.read_bytes().replace(b"\r", b"\n").decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(said) if line.strip()), "")
    return Kill(lived_s, last, count_records(folder), tuple(problems))


def why_not_whole(folder: Path) -> list[str]:
    """Return why the result in a folder is not a whole one; empty for a whole one, or for none."""
    if not (folder / FLAGS).exists():
        return []
    found = read_tuned_folder(folder)
    problems = [found.problem] if found.problem else []
    return problems if found.summary else [*problems, "the folder has flags and no summary of the same emission"]


def kept(folder: Path) -> set[Any]:
    """Return all records and decisions of a store; empty where there is none."""
    records = rows(folder, "SELECT id, task_key, candidate_key, attempt, timing, failure FROM records")
    return {*records, *rows(folder, "SELECT key, value FROM run_decisions")}


def count_records(folder: Path) -> int:
    """Return the number of records in the store."""
    return len(rows(folder, "SELECT id FROM records"))


def rows(folder: Path, query: str) -> list[Any]:
    """Return the rows of a query; none while the store is not made."""
    store = folder / "records.sqlite"
    if not store.exists():
        return []
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=30)) as database:
        made = database.execute("SELECT name FROM sqlite_master WHERE name = 'records'").fetchall()
        return database.execute(query).fetchall() if made else []


def problems_of_end(code: int, output: bytes, folder: Path) -> list[str]:
    """Return what does not hold of the process that ran to its end."""
    if code != 0:
        return [f"the last process ended with {code}"]
    result, problems = json.loads(output), why_not_whole(folder)
    if result["program"]["verdict"] != Verdict.RIGHT:
        problems.append("the numbers of the result are not checked")
    return [*problems, *stored_twice(folder)]


def stored_twice(folder: Path) -> list[str]:
    """Return how many candidates a store has more than once, in a sentence; empty for none."""
    twice = rows(
        folder,
        "SELECT task_key, candidate_key FROM records WHERE origin = 'script' GROUP BY task_key, context_key, "
        "candidate_key HAVING count(*) > 1",
    )
    return [f"{len(twice)} candidates were stored twice"] if twice else []


def main() -> int:
    arguments, publishing = parsed(_parser())
    arguments.folder.mkdir(parents=True, exist_ok=True)
    log, rng, kills = arguments.folder.with_suffix(".log"), random.Random(arguments.seed), list[Kill]()
    start, process = time.monotonic(), begin(arguments, log)
    while len(kills) < arguments.kills:
        after_s = rng.uniform(SHORTEST_S, arguments.longest)
        found = kill(process, after_s, arguments.folder, log, kept(arguments.folder))
        if found is None:
            break
        kills.append(found)
        print(f"killed after {found.after_s:.1f} s: {found.said[:100]}", file=sys.stderr, flush=True)
        process = begin(arguments, log)
    output, _ = process.communicate()
    problems = problems_of_end(process.returncode, output, arguments.folder)
    console().print(table_of(kills))
    if process.returncode == 0:
        result = json.loads(output)
        print(f"ended after {(time.monotonic() - start) / 60:.1f} min and {len(kills)} kills")
        target = detect_target("llvm-cpu", result["threads"])
        publishing.show(results_table(kills, result, arguments, publishing), target)
    for problem in (*(text for each in kills for text in each.problems), *problems):
        print(f"problem: {problem}")
    return int(bool(problems) or any(each.problems for each in kills))


def table_of(kills: list[Kill]) -> Table:
    """Return a table with a row per kill."""
    shown = table("kill", "after", "records", "what it was doing", "problems")
    for number, each in enumerate(kills, 1):
        problems = "; ".join(each.problems) or "none"
        shown.add_row(str(number), f"{each.after_s:.1f} s", str(each.records), each.said[:90], problems)
    return shown


def results_table(
    kills: Sequence[Kill], result: Mapping[str, Any], arguments: argparse.Namespace, publishing: Publishing
) -> ResultTable:
    """Return a table of results with a row for the run; ``result`` is what its last process printed."""
    tuned = result["program"]["tuned"]
    columns: Columns[Sequence[Kill]] = {
        ResultColumn("kills", Unit.COUNT): len,
        ResultColumn("problems", Unit.COUNT): lambda row: sum(len(each.problems) for each in row),
        ResultColumn("speed-up at the end", Unit.RATIO): lambda _: figure(
            tuned["ratio"], tuned["ratio_low"], tuned["ratio_high"]
        ),
    }
    return publishing.table(
        name="kills",
        question="faults",
        title="A run that is killed",
        threads=result["threads"],
        seeds=[arguments.seed],
        interleaving="Tuned and untuned code in turns",
        spread="95 % interval of the median",
        rows_are="model",
        columns=columns,
        rows=[(arguments.model.stem, kills)],
    )


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--parameters", action="append", default=[], metavar="SCOPE=FILE")
    parser.add_argument("--folder", type=Path, default=Path("killed"), help="the output folder; should not exist yet")
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--threads", type=int, default=0, help="as for tune; by default all cores")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument(
        "--longest",
        type=float,
        default=110.0,
        help="most seconds that a process lives; a resumed one compiles the variants anew",
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser
