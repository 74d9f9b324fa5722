"""Parts of the page on search strategies: a row per published system and arm, and the tables that they come from."""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.figures.publishing import FEATURES
from benchmarks.figures.result_table import MachineResults, ResultTable, Unit
from benchmarks.figures.tables import NOTHING, cell_text, markdown_table, result_table
from benchmarks.strategies.arms import SCRATCH
from benchmarks.strategies.verdict import LAST
from mlir_sched.space.features import DIGEST

NOT_YET = "not measured yet"
PREDICTED, OPTION = "Input sensitivity", "`--predict-variants`"
"""The system whose verdict is in tables of ``networks.variants``, and its option."""
SYSTEMS: Mapping[str, Sequence[str]] = {
    "GPTune, Ansor: transfer": ("rows", "starts", "transfer"),
    "Bolt: templates": ("templates",),
    "Templates and transfer": ("all",),
    "One-Shot Tuner": ("oneshot",),
    PREDICTED: (),
    "DynaTune, Ansor: the division of the minutes": (),
    "ALT: active learning": ("mean", "ping_pong", "quantile", "uncertainty"),
}
"""Rows of tables of :data:`JUDGES` by the system that they stand for; systems without one are judged in another way."""
MODELS: Mapping[str, str] = {"GPTune: multitask Gaussian process": "gaussian-process", "Graph neural network": "graph"}
"""The cost model by the system that it stands for, as ``strategies ranking`` judges it."""
JUDGES = ("live", "acquisition")
"""The verbs of ``strategies`` whose tables have verdicts."""
COLUMNS = (f"over {SCRATCH} at 2", f"over {SCRATCH} at 8", f"over {SCRATCH} at {LAST}", "worst family", "overhead")
"""Columns of a table of ``strategies live`` that a system's row has."""


def part(results: Mapping[str, MachineResults], what: str) -> str:
    """Return the table of systems, or all tables of a verb of ``strategies`` with how they were made."""
    if what == "systems":
        return markdown_table(
            ["system", "arm", "machine", *COLUMNS, "verdict"],
            [
                *(row for system, arms in SYSTEMS.items() for row in _rows(results, system, arms)),
                *(row for system, model in MODELS.items() for row in _model_rows(results, system, model)),
            ],
        )
    return "\n\n".join(_section(name, table) for name, table in _tables(results, what)) or f"{NOT_YET.capitalize()}."


def _rows(results: Mapping[str, MachineResults], system: str, arms: Sequence[str]) -> Iterator[list[str]]:
    if system == PREDICTED and (predictions := _tables(results, "variants")):
        for name, table in predictions:
            verdict = dict(table.column("verdict")[1])[table.rows[-1][0]]
            yield [system, OPTION, _link(name), *[NOTHING] * len(COLUMNS), cell_text(verdict, Unit.TEXT)]
        return
    for arm in arms or ("",):
        tables = (each for kind in JUDGES for each in _tables(results, kind))
        found = [(name, table) for name, table in tables if arm in dict(table.rows)]
        shown = f"`{arm}`" if arm else NOTHING
        for name, table in found:
            yield [system, shown, _link(name), *_cells(table, arm)]
        if not found:
            yield [system, shown, *[NOTHING] * (1 + len(COLUMNS)), NOT_YET]


def _link(name: str) -> str:
    return f"[{name}](results/{name}.md)"


def _model_rows(results: Mapping[str, MachineResults], system: str, model: str) -> Iterator[list[str]]:
    shown, nothing = f"`--cost-model {model}`", [NOTHING] * len(COLUMNS)
    found = [(name, table) for name, table in _tables(results, "ranking") if table.name.endswith(f"-ranking-{model}")]
    for name, table in found:
        verdict = next((str(cell) for _, cell in table.column("verdict")[1] if cell is not None), NOT_YET)
        yield [system, shown, _link(name), *nothing, verdict]
    if not found:
        yield [system, shown, NOTHING, *nothing, NOT_YET]


def _cells(table: ResultTable, arm: str) -> Iterator[str]:
    for title in (*COLUMNS, "verdict"):
        if title in [column.title for column in table.columns]:
            column, cells = table.column(title)
            yield cell_text(dict(cells)[arm], column.unit)
        else:
            yield NOTHING


def _tables(results: Mapping[str, MachineResults], kind: str) -> list[tuple[str, ResultTable]]:
    named = [(name, table) for name, found in results.items() for table in found.tables]
    return [(name, table) for name, table in named if table.name.startswith(f"strategies-{kind}-")]


def _section(name: str, table: ResultTable) -> str:
    seeds = f" Seeds {', '.join(map(str, table.seeds))}." if table.seeds else ""
    head = f"**{table.title}** ([{name}](results/{name}.md), {table.date}).{seeds} Brackets: {table.spread}."
    notes = "\n".join(f"- {line}" for line in (*table.notes, *table.against, *_precedes(table)))
    return "\n\n".join([head, result_table(table), notes])


def _precedes(table: ResultTable) -> tuple[str, ...]:
    """Return what is said of a table of models that learnt from other features than those of today."""
    known = table.versions.get(FEATURES, DIGEST)
    return () if known == DIGEST else (f"Its models learnt from other features than those of today ({known}).",)
