"""Tunes programs in growing design spaces at an equal budget, to show the gain of each part of the default space.

``python -m benchmarks composition [OPERATOR or FILE.mlir ...] [--trials 64] [--seeds 3]``. The first space has register
tiles but no cache tiles; each further space has one more part. The last but one is the default space; the last adds
``LoweringConfig``, which is not in the default space. Only dispatches are compared, under the default compiler flags.
With ``--store`` and ``--json`` an interrupted run is resumed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from benchmarks.figures.publishing import add_arguments, publishing_of
from benchmarks.operators.table import OPERATORS, operator_named
from benchmarks.search.composition import report
from benchmarks.search.composition.search import Setting, compose
from benchmarks.search.composition.spaces import growing_spaces
from mlir_sched import TuneOptions
from mlir_sched.database import RecordStore
from mlir_sched.errors import UserError
from mlir_sched.evaluation.evaluator import UntunedError
from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target
from mlir_sched.transform_scripts.llvm_cpu import LoweringConfig


def main() -> None:
    parser = _parser()
    arguments = parser.parse_args()
    publishing = publishing_of(parser, arguments)
    console = Console(width=None if sys.stdout.isatty() else 240)
    try:
        operators = [operator_named(name) for name in arguments.operators] or list(OPERATORS)
        target = detect_target("llvm-cpu", arguments.threads)
    except UserError as error:
        sys.exit(f"error: {error}")
    whole = Space.default(target).insert(LoweringConfig(), after="lowering")
    spaces = growing_spaces(whole)
    asked = {name: getattr(arguments, name) for name in ("trials", "seeds", "threads", "round_size")}
    asked |= {"spaces": [named.name for named in spaces]}
    rows = {row.name: row for row in report.read_json(arguments.json, asked)} if arguments.json else {}
    with tempfile.TemporaryDirectory() as folder, RecordStore.open(arguments.store or Path(folder) / "store") as store:
        setting = Setting(target, spaces, arguments.trials, arguments.seeds, arguments.round_size, store)
        for path in dict.fromkeys(path for operator in operators for path in operator.files):
            if path.stem in rows:
                continue
            try:
                rows[path.stem] = compose(path, setting, lambda text: console.print(text, highlight=False))
            except (UserError, UntunedError) as error:
                console.print(f"{path.stem}: {error}", highlight=False, markup=False)
                continue
            if arguments.json:
                report.write_json(arguments.json, list(rows.values()), asked)
    if not rows:
        sys.exit("error: nothing could be tuned")
    found = list(rows.values())
    console.print(report.table_of(found))
    for note in report.notes_of(found, [module.name for module in whole.modules]):
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    if publishing:
        publishing.add(report.results_table(found, arguments.threads, arguments.seeds, publishing), target)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks composition", description=__doc__)
    parser.add_argument("operators", nargs="*", help="names of the operators, or .mlir files; by default all operators")
    parser.add_argument("--trials", type=int, default=64, help="per program, space and seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--round-size", type=int, default=TuneOptions.round_size, help="candidates per round")
    parser.add_argument("--store", type=Path, help="keep the measurements there, for a run that goes on")
    parser.add_argument("--json", type=Path, help="write the results there; rows already there are not run again")
    add_arguments(parser)
    return parser


if __name__ == "__main__":
    main()
