"""Exports, tunes and times networks: ``python -m benchmarks networks [NETWORK ...] [--minutes 30] [--threads 1]``.

The engines need an environment of their own, which ``python -m benchmarks make_engines`` makes; so does TVM
(``--tvm``), with ``python -m benchmarks make_peer tvm``.
"""

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.figures.publishing import options_of, parsed
from benchmarks.networks.comparison import Result, Setting, WrongResultError, compare_network
from benchmarks.networks.networks import NETWORKS
from benchmarks.networks.results import join, others_took, results_table
from benchmarks.peers.client import PeerError
from benchmarks.peers.make_engines import ENGINES, require_engines
from benchmarks.peers.make_peer import missing, peer_spec
from mlir_sched.errors import UserError
from mlir_sched.runner.cores import choose_cores
from mlir_sched.targets import detect_target
from mlir_sched.text import say

TVM = replace(peer_spec("tvm"), module="benchmarks.peers.peer_tvm_networks")


def main() -> None:
    arguments, publishing = parsed(_parser())
    require_engines()
    target, cores = detect_target("llvm-cpu", arguments.threads), choose_cores(arguments.threads)
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
    results = list[Result]()
    for name in arguments.networks or NETWORKS:
        try:
            results.append(compare_network(name, setting))
        except (UserError, PeerError, WrongResultError) as error:
            say(f"{name}: {error}")
            continue
        rows = join(results)
        publishing.show(results_table(rows, publishing), target)
        say(*others_took(rows))
        if arguments.json:
            arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=2))
    if not results:
        sys.exit("error: no network could be compared")


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("networks", nargs="*", help=f"by default {', '.join(NETWORKS)}; or of families/")
    parser.add_argument("--minutes", type=float, default=30.0, help="of tuning per network")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tvm", action="store_true", help="also tune with TVM MetaSchedule, for as many minutes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=12, help="samples per timed way")
    parser.add_argument("--sample-s", type=float, default=2.0, help="seconds of a sample")
    parser.add_argument("--keep", type=Path, default=Path("networks"), help="folder for what is exported and tuned")
    parser.add_argument("--json", type=Path, help="write the results there")
    return parser
