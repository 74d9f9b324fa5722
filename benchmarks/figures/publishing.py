"""The options of a benchmark, and how its tables are printed and put into a file of results.

``--results FILE --against TEXT`` belong to every benchmark that makes a table.
"""

import argparse
import datetime
import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures.result_file import ResultFileError, add_table, load_results
from benchmarks.figures.result_table import Columns, Figure, Machine, ResultTable, T, cell_of, figure
from benchmarks.figures.tables import print_table
from mlir_sched import __version__
from mlir_sched.outcome import Timing
from mlir_sched.space.features import DIGEST
from mlir_sched.targets import detect_target
from mlir_sched.targets.machine import cpu_identity, cpu_model, runtime_version
from mlir_sched.targets.processor import CPU_FEATURES, flag_values
from mlir_sched.targets.target import Target

FEATURES = "features"
"""What versions of a table call the digest of the features of candidates."""
VECTORS = ("avx", "fma", "amx", "neon", "sve")
"""How the names of processor features begin that decide which code is generated."""
WHOLE_PATH = re.compile(r"(^|[ =])['\"]?[/~]")
"""Finds, in a published command, the path of a folder that other machines do not have."""


@dataclass(frozen=True)
class Publishing:
    """Where tables go, and what stands beside them.

    Attributes:
        path: The file of results; None where tables are printed only.
        against: What speaks against mlir-sched, and against the figures.
        command: What was run, without the options of publishing.
    """

    path: Path | None
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
        columns: Columns[T],
        rows: Iterable[tuple[str, T]],
        interleaving: str = "Nothing is compared",
        requirements: Sequence[str] = (),
        notes: Sequence[str] = (),
        features: bool = False,
    ) -> ResultTable:
        """Return a table of today with this command.

        Args:
            columns: The columns, with what each shows of a row.
            rows: By name, what the cells of a row are made from.
            requirements: Of the packages that are compared beside IREE, as ``name==1.0``.
            features: Whether models of candidates had part in it; the digest of the features is a version then.
            name, question, title, threads, seeds, spread, rows_are, interleaving, notes: As of a table.
        """
        return ResultTable(
            name=name,
            question=question,
            title=title,
            date=datetime.date.today().isoformat(),
            command=self.command,
            versions=versions(requirements) | ({FEATURES: DIGEST} if features else {}),
            threads=threads,
            seeds=tuple(seeds),
            interleaving=interleaving,
            spread=spread,
            rows_are=rows_are,
            columns=tuple(columns),
            rows=tuple((row, tuple(cell_of(shown(of_row)) for shown in columns.values())) for row, of_row in rows),
            against=self.against,
            notes=tuple(notes),
        )

    def add(self, table: ResultTable, target: Target | None = None) -> None:
        """Add a table that was measured on this machine to the file of results, if one is named.

        Args:
            target: This machine's CPU, where it is known already.
        """
        if self.path is not None:
            add_table(self.path, this_machine(target or detect_target("llvm-cpu", 1)), table)

    def show(self, table: ResultTable, target: Target | None = None) -> None:
        """Print a table, and add it as :meth:`add` does."""
        print_table(table)
        self.add(table, target)


def options_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser for the command that was called, with a module's docstring as its help."""
    layout = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=sys.argv[0], description=description, formatter_class=layout)


def parsed(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, Publishing]:
    """Return the values of a benchmark's options, and where its tables go; the options of publishing are added.

    Ends the program where the options cannot work.
    """
    _add_publishing(parser)
    arguments = parser.parse_args()
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    _add_publishing(own)
    _, measured = own.parse_known_args()
    command = f"{parser.prog} {shlex.join(measured)}".strip()
    if arguments.results and not arguments.against:
        parser.error("--results needs --against: say what speaks against us, and against the figures")
    if arguments.results and (whole := [word for word in measured if WHOLE_PATH.search(word)]):
        parser.error(f"--results publishes the command: name {', '.join(whole)} relative to this folder")
    if arguments.results and not arguments.results.parent.is_dir():
        parser.error(f"there is no folder {arguments.results.parent} for --results")
    try:
        if arguments.results and arguments.results.exists():
            load_results(arguments.results)  # before hours of measurement
    except ResultFileError as error:
        parser.error(str(error))
    return arguments, Publishing(arguments.results, tuple(arguments.against), command)


def _add_publishing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, help="put the table into this file, docs/results/MACHINE.json")
    parser.add_argument(
        "--against", action="append", default=[], help="what speaks against us; repeatable, needed with --results"
    )


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
