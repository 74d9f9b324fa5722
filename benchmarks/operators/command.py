"""Tunes the operators of the MetaSchedule paper, or any programs, and compares IREE, mlir-sched, TVM and PyTorch.

``python -m benchmarks operators [OPERATOR or FILE.mlir ...] [--trials 64] [--seeds 3] [--threads 1]``; with 0 trials
nothing is tuned. Every seed is a session: all frameworks are tuned with this seed and started afresh, and all
ways of a row are sampled in turns on the same pinned cores. TVM and PyTorch take part when their environments
exist; ``python -m benchmarks make_peer`` makes them.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks.figures.publishing import options_of, parsed
from benchmarks.figures.rows import Row
from benchmarks.kept import Kept
from benchmarks.operators.comparison import Setting, compare_operator
from benchmarks.operators.results import print_results, results_table, write_markdown
from benchmarks.operators.table import OPERATORS, operator_named
from benchmarks.peers.client import PeerError
from benchmarks.peers.make_peer import FOLDER, REQUIREMENTS, peer_spec
from mlir_sched.errors import UserError
from mlir_sched.runner.cores import choose_cores
from mlir_sched.targets import detect_target
from mlir_sched.text import say

ROWS = Kept("rows", list[dict[str, Any]], 3)


def main() -> None:
    arguments, publishing = parsed(_parser())
    operators = [operator_named(name) for name in arguments.operators] or list(OPERATORS)
    target, cores = detect_target("llvm-cpu", arguments.threads), choose_cores(arguments.threads)
    say(f"measuring cores {', '.join(map(str, cores))}")
    setting = Setting(
        target,
        cores,
        tuple(peer_spec(name, arguments.peers_folder) for name in arguments.peers),
        arguments.trials,
        tuple(range(arguments.seed, arguments.seed + arguments.seeds)),
        arguments.rounds,
        arguments.sample_s,
        arguments.patience_s,
        arguments.prepare_timeout_s,
        arguments.keep,
        arguments.sample_again,
        plain_caller=arguments.threads > 1,
    )
    chosen = {name: getattr(setting, name) for name in ("trials", "seeds", "rounds", "sample_s")}
    chosen |= {"processor": target.processor, "compiler": target.compiler}
    rows = list[Row]()
    for operator in operators:
        say(f"{operator.name} ...")
        try:
            rows.append(compare_operator(operator, setting))
        except (UserError, PeerError) as error:
            say(f"{operator.name}: {error}")
            continue
        ROWS.write(arguments.json, [row.to_json() for row in rows], chosen)  # an interrupted run leaves the rows so far
        if arguments.markdown:
            write_markdown(arguments.markdown, rows, setting, publishing)
        publishing.add(results_table(rows, setting, publishing), target)
    if not rows:
        sys.exit("error: no operator could be compared")
    print_results(rows, setting, publishing)


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("operators", nargs="*", help="names of the table, or .mlir files; by default the whole table")
    parser.add_argument("--trials", type=int, default=64, help="per program; 0 tunes nothing")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", type=_positive, default=3, help="sessions, each with a seed of its own")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--rounds", type=int, default=20, help="samples per timed way and session")
    parser.add_argument("--sample-s", type=float, default=0.02, help="seconds of a sample")
    parser.add_argument(
        "--patience-s", type=float, default=120.0, help="seconds of sampling per session, if 6 rounds fit"
    )
    parser.add_argument("--peers", nargs="*", choices=sorted(REQUIREMENTS), default=sorted(REQUIREMENTS))
    parser.add_argument("--peers-folder", type=Path, default=FOLDER, help="where make_peer put the environments")
    parser.add_argument("--prepare-timeout-s", type=float, default=4 * 3600.0, help="patience for a peer's tuning")
    parser.add_argument("--keep", type=Path, help="folder for what is tuned and sampled, for a run that goes on")
    parser.add_argument("--sample-again", action="store_true", help="sample anew what an earlier run kept")
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--markdown", type=Path, help="write the tables and notes there")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"at least 1, but got {value}")
    return value
