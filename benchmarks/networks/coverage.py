"""Tunes networks of other families for a few minutes: ``python -m benchmarks networks.coverage [FAMILY ...]``.

The table says how much of the untuned time is in dispatches that can have scripts, and what a short run gains. Goals:
no internal error, a share of 90 %, none slower than untuned, no run over its minutes by 5 %. Networks are exported in
the environment of the engines, which ``python -m benchmarks make_engines`` makes.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.figures.publishing import Publishing, gain, options_of, parsed
from benchmarks.figures.result_table import Better, Columns, ResultColumn, ResultTable, Unit
from benchmarks.figures.tables import print_table
from benchmarks.networks.comparison import export, parameters_of, run_name
from benchmarks.networks.families import FAMILIES
from benchmarks.peers.client import PeerError
from benchmarks.peers.make_engines import ENGINES, require_engines
from mlir_sched import TuneOptions, tune
from mlir_sched.errors import UserError
from mlir_sched.targets import detect_target
from mlir_sched.text import say
from mlir_sched.tuned_folder.names import INTERNAL_ERRORS
from mlir_sched.tuned_folder.result import TuneResult


def main() -> None:
    arguments, publishing = parsed(_parser())
    require_engines()
    results = dict[str, TuneResult]()
    options = TuneOptions(minutes=arguments.minutes, threads=arguments.threads, seed=arguments.seed)
    for name in arguments.families or FAMILIES:
        folder = arguments.keep / name
        tuned = folder / f"tuned-{run_name(options)}"
        try:
            export(name, folder, ENGINES)
            parameters = [str(file) for file in parameters_of(folder)]
            results[name] = tune(folder / "model.mlir", tuned, options=options, parameters=parameters)
        except (UserError, PeerError) as error:
            say(f"{name}: {error}")
            continue
        print_table(results_table(results, arguments, publishing))
        if (tuned / INTERNAL_ERRORS).exists():
            say(f"{name}: internal errors: {tuned / INTERNAL_ERRORS}")
        if arguments.json:
            documents = {name: result.to_json() for name, result in results.items()}
            arguments.json.write_text(json.dumps(documents, indent=2))
    if not results:
        sys.exit("error: no network could be tuned")
    publishing.add(results_table(results, arguments, publishing), detect_target("llvm-cpu", arguments.threads))


def _widest_share(result: TuneResult) -> float | None:
    return max((share for share in (result.tunable_share, result.widest_share) if share is not None), default=None)


def _variant(result: TuneResult) -> str:
    return f"{result.program.variant}, {sum(dispatch.tuned is not None for dispatch in result.dispatches)} scripts"


COLUMNS: Columns[TuneResult] = {
    ResultColumn("untuned", Unit.SECONDS): lambda result: result.program.untuned.median_s,
    ResultColumn("tuned", Unit.SECONDS): lambda result: result.program.tuned.median_s,
    ResultColumn("speed-up", Unit.RATIO, Better.ABOVE): lambda result: gain(result.program.tuned),
    ResultColumn("variant"): _variant,
    ResultColumn("trials", Unit.COUNT): lambda result: result.trials,
    ResultColumn("minutes", Unit.NUMBER): lambda result: result.run_seconds / 60,
    ResultColumn("can have scripts", Unit.SHARE): _widest_share,
}


def results_table(
    results: Mapping[str, TuneResult], arguments: argparse.Namespace, publishing: Publishing
) -> ResultTable:
    """Return a table of results with a row per network."""
    return publishing.table(
        name="families",
        question="networks",
        title=f"Other families of networks after {arguments.minutes:g} minutes",
        threads=arguments.threads,
        seeds=[arguments.seed],
        interleaving="Tuned and untuned code in turns",
        spread="95 % interval of the median",
        rows_are="model",
        columns=COLUMNS,
        rows=results.items(),
    )


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("families", nargs="*", help=f"by default all: {', '.join(FAMILIES)}")
    parser.add_argument("--minutes", type=float, default=3.0, help="of tuning per network")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("networks"), help="folder for what is exported and tuned")
    parser.add_argument("--json", type=Path, help="write the results there")
    return parser
