"""The tables of the records: what becomes of every sketch's candidates, and the best of each model."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from benchmarks.devices.cuda_assembly.candidates import Draws, Program
from benchmarks.devices.cuda_assembly.records import UNTUNED, Entry
from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import ResultColumn, ResultTable
from mlir_sched.gpu_model.estimate import Estimate
from mlir_sched.gpu_model.ptx import PtxError
from mlir_sched.gpu_model.ptxas import AssemblyError
from mlir_sched.targets.target import Target

Entries = Mapping[tuple[str, str, str], Entry]


@dataclass(frozen=True)
class Ranked:
    """A candidate, or the untuned code, with what the model of a device says of it."""

    entry: Entry
    estimate: Estimate


MODULES = ("sketch", "models", "draws", "legal", "distinct", "assembled", "spilled", "mma.sync", "cp.async", "failed")
MODELS = ("model", "code", "time", "limit", "occupancy", "moved", "bytes per operation", "sketch", "rank")


def module_rows(drawn: Mapping[str, Sequence[Draws]], entries: Entries, target: Target) -> Iterator[list[str]]:
    """Yield a row per sketch: draws, legal ones, those that are assembled, spilled ones, and special instructions."""
    for sketch, parts in drawn.items():
        names = [name for part in parts for name in part.names if name in entries]
        found = [entries[name] for name in names]
        troubles = Counter(each for entry in found if (each := entry.trouble(target.assembler)))
        good = [entry for entry in found if not entry.trouble(target.assembler)]
        spilled = sum(entry.resources[target.assembler].spilled_bytes > 0 for entry in good)
        attempts = sum(part.attempts for part in parts)
        cells = [sketch, len(parts), attempts, f"{sum(len(part.legal) for part in parts) / attempts:.0%}"]
        cells += [len(set(names)), f"{len(good)} of {len(found)}", spilled]
        for opcode in ("mma.sync", "cp.async"):
            asked = [entry for entry in good if opcode in entry.asked]
            cells.append(f"{sum(entry.kernel.count(opcode) > 0 for entry in asked)} of {len(asked)}" if asked else "-")
        yield [*map(str, cells), ", ".join(f"{kind} {count}" for kind, count in troubles.items()) or "-"]


def model_rows(programs: Sequence[Program], entries: Entries, target: Target) -> Iterator[list[str]]:
    """Yield rows per model: the untuned code, the candidate that is ranked first, and the first that is no worse.

    The last one is the fastest by the model of those with at least the untuned code's occupancy and at most its bytes.
    """
    for program in programs:
        ranking = ranked(program, entries, target)
        untuned = next((each for each in ranking if each.entry.sketch == UNTUNED), None)
        whole = [each for each in ranking if each is not untuned and not _spills(each, target)]
        better = [each for each in whole if untuned and _is_no_worse(each.estimate, untuned.estimate)]
        for title, chosen in (("untuned", [untuned]), ("first", whole[:1]), ("no worse", better[:1])):
            for each in filter(None, chosen):
                rank = "-" if each is untuned else f"{whole.index(each) + 1} of {len(whole)}"
                yield [program.name, title, *_cells(program, each), rank]


def results_tables(
    modules: Sequence[Sequence[str]], models: Sequence[Sequence[str]], target: Target, publishing: Publishing
) -> Iterator[ResultTable]:
    """Yield the two tables of a target as tables of results."""
    tables = (
        ("assembly", "Candidates that are assembled", "none; counts", MODULES, [(row[0], row[1:]) for row in modules]),
        (
            "estimates",
            "What the model likes best",
            "none; estimates",
            (f"{MODELS[0]} and {MODELS[1]}", *MODELS[2:]),
            [(f"{row[0]}: {row[1]}", row[2:]) for row in models],
        ),
    )
    for name, title, spread, (rows_are, *titles), rows in tables:
        yield publishing.table(
            name=f"{name}-{target.assembler}",
            question="devices",
            title=f"{title}, {target.processor}",
            threads=0,
            seeds=[],
            interleaving="Nothing is timed",
            spread=spread,
            rows_are=rows_are,
            columns={ResultColumn(title): itemgetter(at) for at, title in enumerate(titles)},
            rows=rows,
        )


def ranked(program: Program, entries: Entries, target: Target) -> list[Ranked]:
    """Return the code of a program that has an estimate, the fastest first."""
    assert target.gpu_resources is not None
    found = []
    for entry in entries.values():
        if entry.model != program.name or entry.trouble(target.assembler) or entry.launch is None:
            continue
        try:
            said = entry.estimate(target.assembler, target.gpu_resources, program.task.footprint_bytes)
        except (AssemblyError, PtxError):
            continue
        found.append(Ranked(entry, said))
    return sorted(found, key=lambda each: each.estimate.seconds)


def _spills(each: Ranked, target: Target) -> bool:
    return each.entry.resources[target.assembler].spilled_bytes > 0


def _is_no_worse(each: Estimate, untuned: Estimate) -> bool:
    return each.occupancy >= untuned.occupancy and each.moved_bytes <= untuned.moved_bytes


def _cells(program: Program, each: Ranked) -> list[str]:
    assert program.task.dispatch is not None
    said, operations = each.estimate, program.task.dispatch.scalar_ops
    moved = f"{said.moved_bytes / 1e6:.1f} MB"
    time = f"{said.seconds * 1e6:.1f} us"
    per_operation = f"{said.moved_bytes / operations:.2g}"
    return [time, said.limit, f"{said.occupancy:.2f}", moved, per_operation, each.entry.sketch]
