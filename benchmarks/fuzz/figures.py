"""What became of many programs, in lines and as a table of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Figure, ResultColumn, ResultTable, Unit
from benchmarks.fuzz.judge import Judgement


def lines(found: Sequence[Judgement]) -> list[str]:
    """Return the programs by what became of them, the failed candidates by class, and every fault."""
    failures = Counter[str]()
    for each in found:
        failures.update(each.failures)
    trials, named = sum(each.trials for each in found), ", ".join(f"{n} {name}" for name, n in failures.most_common())
    return [
        f"{len(found):5} programs",
        *(f"{count:5} {fate}" for fate, count in Counter(each.fate.value for each in found).most_common()),
        f"{trials:5} candidates; failed: {named or 'none'}",
        *(f"seed {each.seed}: {each.fate}: {_last_line(each.detail)}" for each in found if each.fate.is_fault),
    ]


def results_table(found: Sequence[Judgement], publishing: Publishing) -> ResultTable:
    """Return a table of results with a row for everything that became of a program."""
    return publishing.table(
        name="random-programs",
        question="faults",
        title=f"{len(found)} random programs",
        threads=1,
        seeds=[],
        interleaving="Each program beside NumPy's results",
        spread="none; counts",
        rows_are="outcome",
        columns=[ResultColumn("programs", Unit.COUNT)],
        rows=[(fate, [Figure(count)]) for fate, count in Counter(each.fate.value for each in found).most_common()],
    )


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1].strip()
