"""Makes the pages and pictures of results, and the parts of documents that follow from code.

``python -m benchmarks pages``. Pages and pictures of results come from ``docs/results/*.json``; made parts stand
between comments in README.md and docs (``makers.py``). What is current is not written again.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.figures.charts import Drawing, digest_in, drawing_of, png_of
from benchmarks.figures.result_file import ResultFileError, load_results
from benchmarks.figures.result_table import MachineResults
from benchmarks.folders import ROOT
from benchmarks.pages.machine_page import index_page, machine_page
from benchmarks.pages.makers import makers_of, with_made_parts

RESULTS = ROOT / "docs" / "results"
PICTURES = ROOT / "docs"


def results_by_name(folder: Path = RESULTS) -> dict[str, MachineResults]:
    """Return the results of all machines, by the names of their files.

    Raises:
        ResultFileError: A file breaks the schema.
    """
    return {path.stem: load_results(path) for path in sorted(folder.glob("*.json"))}


def made_pages() -> dict[Path, str]:
    """Return the text of every page that is made, or has made parts, as it has to be."""
    results = results_by_name()
    pages = {RESULTS / f"{name}.md": machine_page(name, found) for name, found in results.items()}
    pages[RESULTS / "index.md"] = index_page(results)
    makers = makers_of(results)
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if path not in pages:
            pages[path] = with_made_parts(path.read_text(), makers)
    return pages


def drawings(results: Mapping[str, MachineResults]) -> dict[Path, Drawing]:
    """Return what every picture has to show.

    Raises:
        ValueError: Two tables have one picture.
    """
    tables = [table for found in results.values() for table in found.tables if table.picture]
    shown = {PICTURES / table.picture.file: drawing_of(table) for table in tables if table.picture}
    if len(shown) < len(tables):
        raise ValueError(f"two tables have one picture among {', '.join(sorted(path.name for path in shown))}")
    return shown


def main() -> None:
    try:
        pages = made_pages()
        pictures = drawings(results_by_name())
    except (ResultFileError, ValueError) as error:
        sys.exit(f"error: {error}")
    for path, text in pages.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(path.relative_to(ROOT))
    for path, drawing in pictures.items():
        if digest_in(path) != drawing.digest:
            path.write_bytes(png_of(drawing))
            print(path.relative_to(ROOT))
