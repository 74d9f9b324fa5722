"""How a benchmark puts its table into a file of results: ``--results FILE --against TEXT``."""

from __future__ import annotations

import argparse
import datetime
import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures.result_file import ResultFileError, add_table, load_results
from benchmarks.figures.result_table import Cell, Figure, Machine, ResultColumn, ResultTable, figure
from mlir_sched import __version__
from mlir_sched.outcome import Timing
from mlir_sched.targets.machine import cpu_identity, cpu_model, runtime_version
from mlir_sched.targets.processor import CPU_FEATURES, flag_values
from mlir_sched.targets.target import Target

VECTORS = ("avx", "fma", "amx", "neon", "sve")
"""How the names of processor features begin that decide which code is generated."""


@dataclass(frozen=True)
class Publishing:
    """Where a table goes, and what stands beside it.

    Attributes:
        path: The file of results.
        against: What speaks against mlir-sched, and against the figures.
        command: What was run, without the options of publishing.
    """

    path: Path
    against: tuple[str, ...]
    command: str

    def table(
        self,
        *,
        name: str,
        question: str,
        title: str,
        threads: int,
        seeds: Sequence[int],
        spread: str,
        rows_are: str,
        columns: Sequence[ResultColumn],
        rows: Iterable[tuple[str, Sequence[Cell]]],
        interleaving: str = "Nothing is compared",
        requirements: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> ResultTable:
        """Return a table of today with this command.

        Args:
            requirements: Of the packages that are compared beside IREE, as ``name==1.0``.
            name, question, title, threads, seeds, spread, rows_are, columns, rows, interleaving, notes: As of a table.
        """
        return ResultTable(
            name=name,
            question=question,
            title=title,
            date=datetime.date.today().isoformat(),
            command=self.command,
            versions=versions(requirements),
            threads=threads,
            seeds=tuple(seeds),
            interleaving=interleaving,
            spread=spread,
            rows_are=rows_are,
            columns=tuple(columns),
            rows=tuple((row, tuple(cells)) for row, cells in rows),
            against=self.against,
            notes=tuple(notes),
        )

    def add(self, table: ResultTable, target: Target) -> None:
        """Add a table that was measured on this machine."""
        add_table(self.path, this_machine(target), table)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the two options."""
    parser.add_argument("--results", type=Path, help="put the table into this file, docs/results/MACHINE.json")
    parser.add_argument(
        "--against", action="append", default=[], help="what speaks against us; repeatable, needed with --results"
    )


def publishing_of(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> Publishing | None:
    """Return where the table goes; None where no file is named. Ends the program where the options cannot work."""
    if not arguments.results:
        return None
    if not arguments.against:
        parser.error("--results needs --against: say what speaks against us, and against the figures")
    try:
        if arguments.results.exists():
            load_results(arguments.results)  # before hours of measurement
    except ResultFileError as error:
        parser.error(str(error))
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_arguments(own)
    _, measured = own.parse_known_args()
    return Publishing(arguments.results, tuple(arguments.against), f"{parser.prog} {shlex.join(measured)}".strip())


def gain(timing: Timing, note: str = "") -> Figure:
    """Return a speed-up over the untuned code with its 95 % interval."""
    return figure(timing.ratio, timing.ratio_low, timing.ratio_high, note)


def this_machine(target: Target) -> Machine:
    """Return this machine as files of results describe machines."""
    features = flag_values(target.flags).get(CPU_FEATURES, "").split(",")
    known = tuple(name[1:] for name in features if name.startswith("+") and name[1:].startswith(VECTORS))
    return Machine(cpu_model(), f"{target.processor} ({cpu_identity()})", known, len(os.sched_getaffinity(0)))


def versions(requirements: Sequence[str] = ()) -> dict[str, str]:
    """Return the versions of mlir-sched and IREE, and of further packages as requirements pin them (``name==1.0``)."""
    pinned = (requirement.split("==") for requirement in requirements if "==" in requirement)
    return {"mlir-sched": __version__, "IREE": runtime_version(), **dict(pinned)}
