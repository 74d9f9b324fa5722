"""Makes the pages of results, and the parts of documents that follow from code: ``python -m benchmarks pages``.

Pages of results come from ``docs/results/*.json``; made parts stand between comments in README.md and docs
(``made.py``). Nothing else is changed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.figures.result_file import ResultFileError, load_results
from benchmarks.figures.result_table import MachineResults
from benchmarks.pages.machine_page import index_page, machine_page
from benchmarks.pages.made import with_made_parts
from benchmarks.pages.makers import makers_of
from benchmarks.peers.client import ROOT

RESULTS = ROOT / "docs" / "results"


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


def main() -> None:
    try:
        pages = made_pages()
    except ResultFileError as error:
        sys.exit(f"error: {error}")
    for path, text in pages.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
