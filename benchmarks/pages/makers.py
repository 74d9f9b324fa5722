"""The makers of parts of documents, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from benchmarks.__main__ import PROGRAMS, what_it_does
from benchmarks.figures.markdown import markdown_table
from benchmarks.figures.result_table import MachineResults
from benchmarks.pages import reference
from benchmarks.pages.made import Makers
from benchmarks.pages.site import PAGES, with_links_of_the_site
from benchmarks.pages.summary_fields import summary
from benchmarks.pages.tables import conclusions, result_table
from benchmarks.peers.client import ROOT


def makers_of(results: Mapping[str, MachineResults]) -> Makers:
    """Return all makers; tables of results are made from the given ones."""
    return {
        "results": lambda argument: excerpt(results, argument),
        "conclusions": lambda argument: conclusions_of(results, argument),
        "benchmarks": lambda _: benchmarks(),
        "readme": readme,
        "options": reference.options,
        "failures": lambda _: reference.failures(),
        "sampling": lambda _: reference.sampling(),
        "verbs": reference.verbs,
        "modules": reference.modules,
        "distributions": lambda _: reference.distributions(),
        "store_tables": lambda _: reference.store_tables(),
        "summary": lambda _: summary(),
        "api": lambda _: reference.api(),
        "packages": lambda _: reference.packages(),
        "layouts": lambda _: reference.layouts(),
    }


def excerpt(results: Mapping[str, MachineResults], argument: str) -> str:
    """Return rows and columns of a table of results.

    Args:
        results: Of all machines.
        argument: ``MACHINE/TABLE; rows: NAME / ...; columns: TITLE / ...``; without rows or columns, all of them.

    Raises:
        KeyError: There is no such machine, table or row.
        ValueError: There is no such column.
    """
    where, *parts = argument.split("; ")
    machine, name = where.split("/")
    chosen = {key: values.split(" / ") for key, values in (part.split(": ", 1) for part in parts)}
    table = results[machine].table(name)
    return result_table(table, chosen.get("rows", ()), chosen.get("columns", ()))


def conclusions_of(results: Mapping[str, MachineResults], argument: str) -> str:
    """Return what follows from the ratios of the table ``MACHINE/TABLE``, as a list; errors as in :func:`excerpt`."""
    machine, name = argument.split("/")
    return "\n".join(f"- {line}" for line in conclusions(results[machine].table(name)))


def benchmarks() -> str:
    """Return the table of all benchmarks with what they do."""
    rows = [
        [f"`python -m benchmarks {name}`", what_it_does(module).replace("``", "`")] for name, module in PROGRAMS.items()
    ]
    return markdown_table(["command", "what it does"], rows)


def readme(section: str) -> str:
    """Return what README.md says in one of its sections, as the page of the documentation that stands for README.md.

    Raises:
        KeyError: README.md has no such section.
    """
    sections = dict(re.findall(r"^## (.+)\n\n((?:(?!## ).*\n)*)", (ROOT / "README.md").read_text(), re.MULTILINE))
    return with_links_of_the_site(sections[section].rstrip(), "README.md", PAGES["README.md"])
