"""Tunes programs in growing design spaces at an equal budget, to show the gain of each part of the default space.

``python -m benchmarks composition [OPERATOR or FILE.mlir ...] [--trials 64] [--seeds 3]``. The first space has register
tiles but no cache tiles; each further space has one more part. The last but one is the default space; the last adds
``LoweringConfig``, which is not in the default space. Only dispatches are compared, under the default compiler flags.
With ``--store`` and ``--json`` an interrupted run is resumed.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.figures.publishing import options_of, parsed
from benchmarks.operators.table import OPERATORS, operator_named
from benchmarks.search.composition.rows import KEPT, notes_of, results_table
from benchmarks.search.composition.search import Setting, compose
from benchmarks.search.composition.spaces import growing_spaces
from mlir_sched import TuneOptions
from mlir_sched.database import RecordStore
from mlir_sched.errors import UserError
from mlir_sched.evaluation.evaluator import UntunedError
from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target
from mlir_sched.text import say
from mlir_sched.transform_scripts.llvm_cpu import LoweringConfig


def main() -> None:
    arguments, publishing = parsed(_parser())
    operators = [operator_named(name) for name in arguments.operators] or list(OPERATORS)
    target = detect_target("llvm-cpu", arguments.threads)
    whole = Space.default(target).insert(LoweringConfig(), after="lowering")
    spaces = growing_spaces(whole)
    asked = {name: getattr(arguments, name) for name in ("trials", "seeds", "threads", "round_size")}
    asked |= {"spaces": [named.name for named in spaces]}
    rows = {row.name: row for row in KEPT.read(arguments.json, asked) or []}
    with tempfile.TemporaryDirectory() as folder, RecordStore.open(arguments.store or Path(folder) / "store") as store:
        setting = Setting(target, spaces, arguments.trials, arguments.seeds, arguments.round_size, store)
        for path in dict.fromkeys(path for operator in operators for path in operator.files):
            if path.stem in rows:
                continue
            try:
                rows[path.stem] = compose(path, setting, say)
            except (UserError, UntunedError) as error:
                say(f"{path.stem}: {error}")
                continue
            KEPT.write(arguments.json, list(rows.values()), asked)
    if not rows:
        sys.exit("error: nothing could be tuned")
    found = list(rows.values())
    publishing.show(results_table(found, arguments.threads, arguments.seeds, publishing), target)
    say(*notes_of(found, [module.name for module in whole.modules]))


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("operators", nargs="*", help="names of the operators, or .mlir files; by default all operators")
    parser.add_argument("--trials", type=int, default=64, help="per program, space and seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--round-size", type=int, default=TuneOptions.round_size, help="candidates per round")
    parser.add_argument("--store", type=Path, help="keep the measurements there, for a run that goes on")
    parser.add_argument("--json", type=Path, help="write the results there; rows already there are not run again")
    return parser
