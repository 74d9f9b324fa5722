"""Replays recorded runs under budgets of minutes: what the rules about time reach, without a compiler.

Every recorded run (``benchmarks/data/allocation``) is replayed for every budget, on machines of other speeds, with the
candidates of each task in other orders. A figure is the time of the emitted program over the best that the recorded
plans and candidates have: the median over speeds and orders, with the middle 80 % of them.

    python -m benchmarks allocation --orders 100
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import geometric_mean, median

from rich.console import Console
from rich.table import Table

from benchmarks.allocation.outcomes import MINUTES, SPEEDS, Outcome, outcomes
from benchmarks.allocation.recorded import recorded_runs
from benchmarks.figures.publishing import Publishing, add_arguments, publishing_of
from benchmarks.figures.result_table import Figure, ResultColumn, ResultTable, Unit
from mlir_sched.targets import detect_target


def main() -> None:
    """Replay and print the table."""
    parser = _parser()
    arguments = parser.parse_args()
    publishing = publishing_of(parser, arguments)
    known = recorded_runs()
    if missing := [name for name in arguments.runs if name not in known] or (not known and ["any"]):
        parser.error(f"there is no recorded run {missing[0]!r}; there are {', '.join(known) or 'none'}")
    chosen = {name: known[name] for name in arguments.runs or known}
    found = outcomes(chosen, arguments.minutes, arguments.speeds, arguments.orders)
    Console(width=140).print(table_of(found))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
    if publishing:
        publishing.add(results_table(found, arguments.orders, publishing), detect_target("llvm-cpu", 1))


def table_of(found: Sequence[Outcome]) -> Table:
    """Return a table with a row per recorded run and a column per budget, and the geometric means below."""
    minutes = list(dict.fromkeys(each.minutes for each in found))
    table = Table("recorded run", *(f"{each:g} min" for each in minutes), title="time over the best there is")
    by_place = {(each.name, each.minutes): each for each in found}
    for name in dict.fromkeys(each.name for each in found):
        table.add_row(name, *(_text(by_place[name, each].figure) for each in minutes))
    alike = [[each for each in found if each.minutes == budget] for budget in minutes]
    means = [geometric_mean(median(each.over_best) for each in group) for group in alike]
    table.add_row("geometric mean", *(f"{mean:.3f}" for mean in means))
    longest = [max(median(each.whole) for each in group) for group in alike]
    table.add_row("longest run over its minutes", *(f"{share:.2f}" for share in longest))
    return table


def results_table(found: Sequence[Outcome], orders: int, publishing: Publishing) -> ResultTable:
    """Return the table for a file of results."""
    minutes = list(dict.fromkeys(each.minutes for each in found))
    by_place = {(each.name, each.minutes): each for each in found}
    names = dict.fromkeys(each.name for each in found)
    return publishing.table(
        name="allocation",
        question="search",
        title="Minutes: what a run reaches, by replay",
        threads=0,
        seeds=range(1, orders + 1),
        interleaving="Nothing is timed: recorded runs are replayed on a clock of their own",
        spread=f"the middle 80 % of {orders} orders of candidates on machines of {len(SPEEDS)} speeds",
        rows_are="machine, network and threads \\ minutes",
        columns=[ResultColumn(f"{each:g}", Unit.NUMBER) for each in minutes],
        rows=[(name, [by_place[name, each].figure for each in minutes]) for name in names],
        notes=("The time of the emitted program over the best that the recorded plans and candidates have.",),
    )


def _text(found: Figure) -> str:
    return f"{found.median:.3f} ({found.low:.3f} to {found.high:.3f})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks allocation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "runs", nargs="*", metavar="RUN", help="recorded runs, as MACHINE/NETWORK-THREADS; all by default"
    )
    parser.add_argument("--orders", type=int, default=100, help="orders of the candidates, >= 1")
    parser.add_argument("--minutes", type=float, nargs="+", default=list(MINUTES))
    parser.add_argument("--speeds", type=float, nargs="+", default=list(SPEEDS))
    parser.add_argument("--json", type=Path, help="write all replays into this file")
    add_arguments(parser)
    return parser


if __name__ == "__main__":
    main()
