"""Replays recorded runs under budgets of minutes: what the rules about time reach, without a compiler.

Every recorded run (``benchmarks/data/allocation``) is replayed for every budget, on machines of other speeds, with the
candidates of each task in other orders. A figure is the time of the emitted program over the best that the recorded
plans and candidates have: the median over speeds and orders, with the middle 80 % of them.

    python -m benchmarks allocation --orders 100
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from statistics import geometric_mean, median

from benchmarks.allocation.outcomes import MINUTES, SPEEDS, Outcome, outcomes
from benchmarks.allocation.recorded import recorded_runs
from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import ResultColumn, ResultTable, Unit
from mlir_sched.text import say


def main() -> None:
    """Replay and print the table."""
    parser = _parser()
    arguments, publishing = parsed(parser)
    known = recorded_runs()
    if missing := [name for name in arguments.runs if name not in known] or (not known and ["any"]):
        parser.error(f"there is no recorded run {missing[0]!r}; there are {', '.join(known) or 'none'}")
    chosen = {name: known[name] for name in arguments.runs or known}
    found = outcomes(chosen, arguments.minutes, arguments.speeds, arguments.orders)
    publishing.show(results_table(found, arguments.orders, publishing))
    say(*means_of(found))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")


def results_table(found: Sequence[Outcome], orders: int, publishing: Publishing) -> ResultTable:
    """Return a table with a row per recorded run and a column per budget."""
    minutes = list(dict.fromkeys(each.minutes for each in found))
    by_place = {(each.name, each.minutes): each for each in found}
    return publishing.table(
        name="allocation",
        question="search",
        title="Minutes: what a run reaches, by replay",
        threads=0,
        seeds=range(1, orders + 1),
        interleaving="Nothing is timed: recorded runs are replayed on a clock of their own",
        spread=f"the middle 80 % of {orders} orders of candidates on machines of {len(SPEEDS)} speeds",
        rows_are="machine, network and threads \\ minutes",
        columns={ResultColumn(f"{each:g}", Unit.NUMBER): itemgetter(at) for at, each in enumerate(minutes)},
        rows=[
            (name, [by_place[name, each].figure for each in minutes])
            for name in dict.fromkeys(each.name for each in found)
        ],
        notes=("The time of the emitted program over the best that the recorded plans and candidates have.",),
    )


def means_of(found: Sequence[Outcome]) -> Iterator[str]:
    """Yield a line per budget: the geometric mean over the recorded runs, and how long the replays took."""
    for minutes in dict.fromkeys(each.minutes for each in found):
        group = [each for each in found if each.minutes == minutes]
        mean = geometric_mean(median(each.over_best) for each in group)
        late, whole = sum(each.late for each in group), [seconds for each in group for seconds in each.whole]
        times = f"{median(whole):.2f} of their minutes (the longest {max(whole):.2f})"
        yield f"{minutes:g} min: geometric mean {mean:.3f}; runs take {times}, and {late} of {len(whole)} end late"


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument(
        "runs", nargs="*", metavar="RUN", help="recorded runs, as MACHINE/NETWORK-THREADS; all by default"
    )
    parser.add_argument("--orders", type=int, default=100, help="orders of the candidates, >= 1")
    parser.add_argument("--minutes", type=float, nargs="+", default=list(MINUTES))
    parser.add_argument("--speeds", type=float, nargs="+", default=list(SPEEDS))
    parser.add_argument("--json", type=Path, help="write all replays into this file")
    return parser
