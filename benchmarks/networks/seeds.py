"""Joins results of several seeds: ``python -m benchmarks networks.seeds RESULT.json ...``.

Every file is what ``python -m benchmarks networks --json`` wrote for one seed, all of them with the same minutes and
threads on this machine.
"""

import json
from pathlib import Path

from benchmarks.figures.publishing import options_of, parsed
from benchmarks.kept import converter
from benchmarks.networks.comparison import Result
from benchmarks.networks.results import join, results_table
from mlir_sched.targets import detect_target


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="a file per seed")
    arguments, publishing = parsed(parser)
    found = [converter().structure(json.loads(path.read_text()), list[Result]) for path in arguments.files]
    rows = join([result for of_seed in found for result in of_seed])
    publishing.show(results_table(rows, publishing), detect_target("llvm-cpu", rows[0].results[0].threads))
