"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown, without a line break at its end; lines within a cell are joined by commas."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace(chr(10), ', ') for cell in line)} |" for line in lines)


def in_a_cell(text: str) -> str:
    """Return text for a cell of a table: a bar would end the cell."""
    return " ".join(text.split()).replace("|", "\\|")
