"""Tunes the operators of the MetaSchedule paper, or any programs, and compares IREE, mlir-sched, TVM and PyTorch.

``python -m benchmarks operators [OPERATOR or FILE.mlir ...] [--trials 64] [--seeds 3] [--threads 1]``; with 0 trials
nothing is tuned. Every seed is a session: all frameworks are tuned with this seed and started afresh, and all
ways of a row are sampled in turns on the same pinned cores. TVM and PyTorch take part when their environments
exist; ``python -m benchmarks make_peer`` makes them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.figures import results
from benchmarks.figures.publishing import add_arguments, publishing_of
from benchmarks.figures.rows import Row
from benchmarks.operators.comparison import Setting, compare_operator
from benchmarks.operators.results import results_table
from benchmarks.operators.table import OPERATORS, operator_named
from benchmarks.peers.client import PeerError
from benchmarks.peers.make_peer import FOLDER, REQUIREMENTS, peer_spec
from mlir_sched.errors import UserError
from mlir_sched.runner.cores import choose_cores
from mlir_sched.targets import detect_target


def main() -> None:
    parser = _parser()
    arguments = parser.parse_args()
    publishing = publishing_of(parser, arguments)
    console = Console(width=None if sys.stdout.isatty() else 200)
    try:
        operators = [operator_named(name) for name in arguments.operators] or list(OPERATORS)
        cores = choose_cores(arguments.threads)
        target = detect_target("llvm-cpu", arguments.threads)
    except (UserError, ValueError) as error:
        sys.exit(f"error: {error}")
    console.print(f"measuring cores {', '.join(map(str, cores))}", highlight=False)
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
    rows = []
    for operator in operators:
        console.print(f"{operator.name} ...", highlight=False)
        try:
            rows.append(compare_operator(operator, setting))
        except (UserError, PeerError) as error:
            console.print(f"{operator.name}: {error}", highlight=False, markup=False)
            continue
        _write(arguments, rows, setting)  # so that an interrupted run leaves the rows so far
        if publishing:
            publishing.add(results_table(rows, setting, publishing), target)
    if not rows:
        sys.exit("error: no operator could be compared")
    results.print_results(console, rows)


def _write(arguments: argparse.Namespace, rows: Sequence[Row], setting: Setting) -> None:
    if arguments.json:
        chosen = {
            "trials": setting.trials,
            "seeds": setting.seeds,
            "rounds": setting.rounds,
            "sample_s": setting.sample_s,
        }
        processor = {"processor": setting.target.processor, "compiler": setting.target.compiler}
        results.write_json(arguments.json, rows, chosen | processor)
    if arguments.markdown:
        results.write_markdown(arguments.markdown, rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks operators", description=__doc__)
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
    add_arguments(parser)
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"at least 1, but got {value}")
    return value


if __name__ == "__main__":
    main()
