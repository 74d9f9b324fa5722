"""The page of one machine's results, and the page that lists all machines."""

from collections.abc import Iterator, Mapping

from benchmarks.figures.result_table import QUESTIONS, MachineResults, ResultTable
from benchmarks.figures.tables import TIE, conclusions, markdown_table, result_table

INTRODUCTION = """\
Every page has a table per question, the command above the table, and what speaks against us below. Machines differ, so
no row of one page can be compared with a row of another. [How figures are made](../benchmarks.md) says what the columns
mean; the figures are data, in a `.json` file beside each page."""
"""Above the list of machines."""


def made_from(source: str) -> str:
    """Return the first line of a page that is made, which says from what."""
    return f"<!-- made by `python -m benchmarks pages` from {source}; not to be edited -->"


def machine_page(name: str, results: MachineResults) -> str:
    """Return the page of a machine: a part per question, a table per way of asking.

    Args:
        name: Name of the file of results, without its ending.
    """
    machine = results.machine
    parts = [made_from(f"{name}.json"), f"# {machine.title}"]
    features = f" Features: {', '.join(machine.features)}." if machine.features else ""
    cores = f" Cores: {machine.cores}." if machine.cores else ""
    parts.append(f"{machine.processor}.{cores}{features} {machine.note}".strip())
    for question, title in QUESTIONS.items():
        tables = [table for table in results.tables if table.question == question]
        if tables:
            parts += [f"## {title}", *(part for table in tables for part in _section(table))]
    return "\n\n".join(parts) + "\n"


def _section(table: ResultTable) -> Iterator[str]:
    yield f"### {table.title}"
    yield f"```sh\n{table.command}\n```"
    yield _how(table)
    yield result_table(table)
    if found := list(conclusions(table)):
        yield "\n".join(f"- {line}" for line in found)
    if table.picture:
        yield f"![{table.title}](../{table.picture.file})"
    yield "**What speaks against us**"
    yield "\n".join(f"- {line}" for line in table.against)
    if table.notes:
        yield "**More**"
        yield "\n".join(f"- {line}" for line in table.notes)


def _how(table: ResultTable) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in table.versions.items())
    threads = f" {table.threads} thread{'' if table.threads == 1 else 's'}." if table.threads else ""
    seeds = f" Seed{'' if len(table.seeds) == 1 else 's'} {', '.join(map(str, table.seeds))}." if table.seeds else ""
    return (
        f"{table.date}; {versions}.{threads}{seeds} {table.interleaving}. Brackets: {table.spread}."
        f"{f' {TIE}: not told apart.' if _has_ties(table) else ''}"
    )


def _has_ties(table: ResultTable) -> bool:
    return any(getattr(cell, "tie", False) for _, cells in table.rows for cell in cells)


def index_page(machines: Mapping[str, MachineResults]) -> str:
    """Return the page that says which question was asked on which machine, with links to the answers."""
    rows = []
    for name, results in machines.items():
        asked = {table.question for table in results.tables}
        links = ", ".join(
            f"[{title}]({name}.md#{title.lower().replace(' ', '-')})" for q, title in QUESTIONS.items() if q in asked
        )
        rows.append([f"[{results.machine.title}]({name}.md)", results.machine.processor, links])
    table = markdown_table(["machine", "processor", "questions"], rows)
    return "\n\n".join([made_from("the files beside it"), "# Results by machine", INTRODUCTION, table]) + "\n"
