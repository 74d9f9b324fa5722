"""Tunes networks of other families for a few minutes: ``python -m benchmarks networks.coverage [FAMILY ...]``.

The table says how much of the untuned time is in dispatches that can have scripts, and what a short run gains. Goals:
no internal error, a share of 90 %, none slower than untuned, no run over its minutes by 5 %. Networks are exported in
the environment of the engines, which ``python -m benchmarks make_engines`` makes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures.publishing import Publishing, add_arguments, gain, publishing_of
from benchmarks.figures.result_table import Better, Cell, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.networks.comparison import TUNED_FOLDER, export, parameters_of
from benchmarks.networks.families import FAMILIES
from benchmarks.peers.client import PeerError
from benchmarks.peers.make_engines import ENGINES, require_engines
from mlir_sched import TuneOptions, tune
from mlir_sched.errors import UserError
from mlir_sched.targets import detect_target
from mlir_sched.text import median, speedup
from mlir_sched.tuned_folder.names import INTERNAL_ERRORS
from mlir_sched.tuned_folder.result import TuneResult


def main() -> None:
    parser = _parser()
    arguments = parser.parse_args()
    publishing = publishing_of(parser, arguments)
    require_engines()
    console, results = Console(width=None if sys.stdout.isatty() else 160), dict[str, TuneResult]()
    for name in arguments.families or FAMILIES:
        folder = arguments.keep / name
        try:
            export(name, folder, ENGINES)
            options = TuneOptions(minutes=arguments.minutes, threads=arguments.threads, seed=arguments.seed)
            parameters = [str(file) for file in parameters_of(folder)]
            results[name] = tune(folder / "model.mlir", folder / TUNED_FOLDER, options=options, parameters=parameters)
        except (UserError, PeerError) as error:
            console.print(f"{name}: {error}", highlight=False, markup=False)
            continue
        console.print(table_of(results, arguments.keep))
        if arguments.json:
            documents = {name: result.to_json() for name, result in results.items()}
            arguments.json.write_text(json.dumps(documents, indent=2))
    if not results:
        sys.exit("error: no network could be tuned")
    if publishing:
        publishing.add(results_table(results, arguments, publishing), detect_target("llvm-cpu", arguments.threads))


def table_of(results: dict[str, TuneResult], folder: Path) -> Table:
    """Return a table with a row per network.

    Args:
        results: The results by network.
        folder: What holds a folder per network.
    """
    table = Table("network", "untuned", "tuned", "speed-up", "variant", "trials", "took", "can have scripts", "errors")
    for name, result in results.items():
        program, share = result.program, _widest_share(result)
        errors = (folder / name / TUNED_FOLDER / INTERNAL_ERRORS).exists()
        table.add_row(
            name,
            median(program.untuned),
            median(program.tuned),
            speedup(program.tuned),
            _variant(result),
            str(result.trials),
            f"{result.run_seconds / 60:.1f} min",
            "-" if share is None else f"{share:.1%}",
            "internal" if errors else "none",
        )
    return table


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
        columns=[
            ResultColumn("untuned", Unit.SECONDS),
            ResultColumn("tuned", Unit.SECONDS),
            ResultColumn("speed-up", Unit.RATIO, Better.ABOVE),
            ResultColumn("variant"),
            ResultColumn("trials", Unit.COUNT),
            ResultColumn("minutes", Unit.NUMBER),
            ResultColumn("can have scripts", Unit.SHARE),
        ],
        rows=[(name, _cells(result)) for name, result in results.items()],
    )


def _cells(result: TuneResult) -> tuple[Cell, ...]:
    program, share = result.program, _widest_share(result)
    return (
        figure(program.untuned.median_s),
        figure(program.tuned.median_s),
        gain(program.tuned),
        _variant(result),
        Figure(result.trials),
        figure(result.run_seconds / 60),
        None if share is None else figure(share),
    )


def _variant(result: TuneResult) -> str:
    return f"{result.program.variant}, {sum(dispatch.tuned is not None for dispatch in result.dispatches)} scripts"


def _widest_share(result: TuneResult) -> float | None:
    return max((share for share in (result.tunable_share, result.widest_share) if share is not None), default=None)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks networks.coverage", description=__doc__)
    parser.add_argument("families", nargs="*", help=f"by default all: {', '.join(FAMILIES)}")
    parser.add_argument("--minutes", type=float, default=3.0, help="of tuning per network")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("networks"), help="folder for what is exported and tuned")
    parser.add_argument("--json", type=Path, help="write the results there")
    add_arguments(parser)
    return parser


if __name__ == "__main__":
    main()
