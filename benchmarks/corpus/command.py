"""Collects measured candidates of many dispatches, or shows what was collected: ``collect SET`` or ``show``.

Models and strategies are judged with these candidates. A collection that was stopped, by Ctrl-C, ``--minutes`` or kill
-9, goes on with the same command: a program that has its file is done, and what the store has is not measured again.
Nothing else should run meanwhile.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from benchmarks.corpus.collection import Collection
from benchmarks.corpus.sets import COLLECTED, SETS, Select
from benchmarks.folders import ROOT
from mlir_sched.corpus.files import SHIPPED, files_in, read_task
from mlir_sched.database import RecordStore
from mlir_sched.targets import detect_target
from mlir_sched.text import console, say, table

KEPT = ROOT / "benchmarks" / ".corpus"
"""Folder of the stores, one per machine and set."""


def main() -> int:
    """Do what the command says; 3 is the exit code of a collection that is not at its end."""
    arguments = _parser().parse_args()
    return collect(arguments) if arguments.verb == "collect" else show(arguments.folders)


def collect(arguments: argparse.Namespace) -> int:
    """Collect a set, or go on with it."""
    end = time.monotonic() + 60 * arguments.minutes
    target = detect_target("llvm-cpu", None if SETS[arguments.set].all_cores else 1)
    machine = arguments.machine or target.processor
    arguments.keep.mkdir(parents=True, exist_ok=True)
    name = arguments.set if arguments.select is Select.FASTEST else f"{arguments.set}-{arguments.select}"
    with RecordStore.open(arguments.keep / f"{machine}-{name}.sqlite") as store:
        collection = Collection(arguments.set, target, machine, store, arguments.output, arguments.select)
        if collection.collect(end):
            return 0
    say(f"{arguments.set}: not at its end yet; the same command goes on")
    return 3


def show(folders: Iterable[Path]) -> int:
    """Print the tasks, candidates, families and machines of the files in folders."""
    found = [(path.resolve(), read_task(path)) for folder in folders for path in files_in(folder)]
    shown = table("machine", "set", "family", ">tasks", ">candidates", ">failed", ">not legal today")
    placed = sorted(((path.parts[-3], path.parts[-2], task.family, task) for path, task in found), key=lambda p: p[:3])
    for place, group in groupby(placed, key=lambda each: each[:3]):
        tasks = [task for *_, task in group]
        counted = (
            sum(len(task.measured) for task in tasks),
            sum(each.failure is not None for task in tasks for each in task.measured),
            sum(task.dropped for task in tasks),
        )
        shown.add_row(*place, str(len(tasks)), *map(str, counted))
    if found:
        console().print(shown)
    tasks = [task for _, task in found]
    machines, families = {task.target.machine for task in tasks}, {task.family for task in tasks}
    candidates, size = sum(len(task.measured) for task in tasks), sum(path.stat().st_size for path, _ in found)
    say(
        f"{len(tasks)} tasks, {candidates} candidates, {len(families)} families, {len(machines)} machines, "
        f"{size / 1000:.0f} kB"
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=sys.argv[0], description=__doc__, formatter_class=layout)
    verbs = parser.add_subparsers(dest="verb", required=True)
    sets = "\n".join(f"  {name:10} {each.what}; {each.size}" for name, each in SETS.items())
    collecting = verbs.add_parser(
        "collect", help="collect a set", description=f"The sets:\n{sets}", formatter_class=layout
    )
    collecting.add_argument("set", choices=SETS, metavar="SET")
    collecting.add_argument("--minutes", type=float, default=math.inf, help="when to stop, in whole rounds")
    collecting.add_argument("--machine", default="", help="name of this machine's folder; by default the processor's")
    collecting.add_argument(
        "--select",
        type=Select,
        choices=list(Select),
        default=Select.FASTEST,
        help="what is measured behind random draws: what a search chooses, or what a model is least sure of",
    )
    collecting.add_argument("--keep", type=Path, default=KEPT, help="folder of the stores")
    collecting.add_argument("--output", type=Path, help="folder of the files, to try something")
    showing = verbs.add_parser("show", help="show what was collected")
    showing.add_argument("folders", nargs="*", type=Path, default=[SHIPPED, COLLECTED], help="folders of files")
    return parser
