"""Parts of documents that are made: what stands between two comments, by the maker that the first one names.

    <!-- made: MAKER ARGUMENT -->
    ...
    <!-- end -->

The text between the comments is replaced; what surrounds them is written by hand.
"""

import re
from collections.abc import Callable, Mapping

from benchmarks.__main__ import PROGRAMS, what_it_does
from benchmarks.figures.result_table import MachineResults
from benchmarks.figures.tables import conclusions, markdown_table, result_table
from benchmarks.folders import ROOT
from benchmarks.pages import reference, strategies
from benchmarks.pages.site import PAGES, with_links_of_the_site
from benchmarks.pages.summary_fields import summary

_PART = re.compile(r"<!-- made: (\w+)(?: ([^\n]*?))? -->\n.*?<!-- end -->", re.DOTALL)

Makers = Mapping[str, Callable[[str], str]]
"""By name, what makes a part from the argument of its comment."""


def with_made_parts(text: str, makers: Makers) -> str:
    """Return a document with its made parts renewed.

    Raises:
        KeyError: A part names a maker, or a maker's argument names a thing, that there is not.
    """

    def renew(part: re.Match[str]) -> str:
        opening = part[0].partition("\n")[0]
        return f"{opening}\n\n{makers[part[1]](part[2] or '')}\n\n<!-- end -->"

    return _PART.sub(renew, text)


def makers_of(results: Mapping[str, MachineResults]) -> Makers:
    """Return all makers; tables of results are made from the given ones."""
    return {
        "results": lambda argument: excerpt(results, argument),
        "conclusions": lambda argument: conclusions_of(results, argument),
        "strategies": lambda argument: strategies.part(results, argument),
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
