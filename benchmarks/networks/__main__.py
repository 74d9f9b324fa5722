"""Exports, tunes and times networks: ``python -m benchmarks networks [NETWORK ...] [--minutes 30] [--threads 1]``.

The engines need an environment of their own, which ``python -m benchmarks make_engines`` makes; so does TVM
(``--tvm``), with ``python -m benchmarks make_peer tvm``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures.publishing import add_arguments, publishing_of
from benchmarks.networks.comparison import Result, Setting, WrongResultError, compare_network
from benchmarks.networks.joined import join
from benchmarks.networks.networks import NETWORKS
from benchmarks.networks.results import results_table
from benchmarks.operators.programs import TUNED
from benchmarks.peers.client import PeerError
from benchmarks.peers.make_engines import ENGINES, require_engines
from benchmarks.peers.make_peer import missing, peer_spec
from benchmarks.peers.tuning import Tuning
from mlir_sched.errors import UserError
from mlir_sched.runner.cores import choose_cores
from mlir_sched.runner.statistics import Interval
from mlir_sched.targets import detect_target

TVM = replace(peer_spec("tvm"), module="benchmarks.peers.peer_tvm_networks")


def main() -> None:
    parser = _parser()
    arguments = parser.parse_args()
    publishing = publishing_of(parser, arguments)
    require_engines()
    try:
        target, cores = detect_target("llvm-cpu", arguments.threads), choose_cores(arguments.threads)
    except (UserError, ValueError) as error:
        sys.exit(f"error: {error}")
    if arguments.tvm and (note := missing(TVM)):
        sys.exit(f"error: TVM is {note}")
    setting = Setting(
        target,
        cores,
        ENGINES,
        (TVM,) if arguments.tvm else (),
        arguments.minutes,
        arguments.seed,
        arguments.rounds,
        arguments.sample_s,
        arguments.keep,
    )
    console, results = Console(width=None if sys.stdout.isatty() else 160), list[Result]()
    for name in arguments.networks or NETWORKS:
        try:
            results.append(compare_network(name, setting))
        except (UserError, PeerError, WrongResultError) as error:
            console.print(f"{name}: {error}", highlight=False, markup=False)
            continue
        console.print(table_of(results))
        if arguments.json:
            arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=2))
        if publishing:
            publishing.add(results_table(join(results), publishing), target)
    if not results:
        sys.exit("error: no network could be compared")


def table_of(results: Sequence[Result]) -> Table:
    """Return a table with a row per network: milliseconds per call with their intervals, and the ratio."""
    columns = list(dict.fromkeys(label for result in results for label in result.seconds))
    columns.sort(key=lambda label: label != TUNED)
    table = Table("network", *columns, f"{TUNED} over the best", "trials", "took", "others took")
    for result in results:
        times = [_milliseconds(result.seconds[label]) if label in result.seconds else "-" for label in columns]
        ratio = f"{result.over_best.median:.2f} ({result.over_best.low:.2f} to {result.over_best.high:.2f})"
        others = ", ".join(f"{label}: {_cost(tuning)}" for label, tuning in result.others.items())
        own = str(result.tuning.trials), _minutes(result.tuning)
        table.add_row(result.network, *times, f"{ratio} {result.best}", *own, others)
    return table


def _cost(tuning: Tuning) -> str:
    return f"{tuning.trials} trials, {_minutes(tuning)}" if tuning.trials else _minutes(tuning)


def _minutes(tuning: Tuning) -> str:
    return f"{tuning.seconds / 60:.1f} min"


def _milliseconds(interval: Interval) -> str:
    low, median, high = (f"{seconds * 1e3:.3g}" for seconds in (interval.low, interval.median, interval.high))
    return f"{median} ({low} to {high})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks networks", description=__doc__)
    parser.add_argument("networks", nargs="*", help=f"by default {', '.join(NETWORKS)}; or of families/")
    parser.add_argument("--minutes", type=float, default=30.0, help="of tuning per network")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tvm", action="store_true", help="also tune with TVM MetaSchedule, for as many minutes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=12, help="samples per timed way")
    parser.add_argument("--sample-s", type=float, default=2.0, help="seconds of a sample")
    parser.add_argument("--keep", type=Path, default=Path("networks"), help="folder for what is exported and tuned")
    parser.add_argument("--json", type=Path, help="write the results there")
    add_arguments(parser)
    return parser


if __name__ == "__main__":
    main()
