"""Variants that IREE does not compile because of single sites: these stay as they were, and the rest competes.

The compiler's diagnostics name places of the source, or of the library, which lead to sites; else the sites at fault
are found by halving. Every set of sites that is tried is compiled as the variant that it makes, so that what is found
is compiled already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlir_sched.errors import MlirSchedError
from mlir_sched.program.building import Attempt
from mlir_sched.program.halving import most_tries, without_faults
from mlir_sched.program.plan import KeptSite, Plan
from mlir_sched.program.rewrites.padding.separate import FLAG_SITES
from mlir_sched.program.rewrites.pipeline import StagedSite
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.compile_policy import NO_TIME_TO_COMPILE
from mlir_sched.tuned_folder.names import LIBRARY

Place = tuple[str, int, int]
"""Name of a file without its folder, line and column, as compilers count."""
_DIAGNOSED = re.compile(r"^(.+?):(\d+):(\d+): (?:error|note|remark|warning):", re.MULTILINE)
_LOCATION = re.compile(r'"([^"]+)":(\d+):(\d+)')
_FUNCTION = re.compile(r"\s*util\.func private @(\w+)\(")


@dataclass
class Mending:
    """The search for the sites at fault in one variant.

    Attributes:
        variant: The variant, whose plan leaves no site as it is.
        placed: Returns the sites of a plan, in the order in which they are rewritten.
        attempt: Compiles the variant by another plan.
        has_time: Says whether there is time to compile it once more.
        found: The variant with most sites among those that were compiled so far.
    """

    variant: Variant
    placed: Callable[[Plan], Sequence[StagedSite]]
    attempt: Callable[[Plan], Attempt]
    has_time: Callable[[], bool]
    found: BuiltVariant | None = None
    _placed: Sequence[StagedSite] = field(default=(), init=False)
    _tries: int = field(default=0, init=False)

    def mended(self, diagnostics: str) -> BuiltVariant | None:
        """Return the variant without the sites at fault; None where that is of no use.

        Sites that the diagnostics name are left as they were, all together at first, and then as few of them as
        possible; where they name none, or those are not to blame, all sites of the variant are.

        Args:
            diagnostics: What the compiler said of the variant with all its sites.
        """
        if not any(isinstance(change, SiteRewrite) for change in self.variant.plan.changes):
            return None
        try:
            self._placed = last_first(self.placed(self.variant.plan))
        except MlirSchedError:
            return None
        self._tries = most_tries(len(self._placed)) + 1
        suspects = self._suspects(diagnostics) or self._sites
        without_faults(suspects, lambda changed: not self._said(changed), self._tries, self._but(suspects))
        return self.found

    @property
    def _sites(self) -> tuple[KeptSite, ...]:
        return tuple(KeptSite(site.rewrite, site.label) for site in self._placed)

    def _but(self, sites: Collection[KeptSite]) -> tuple[KeptSite, ...]:
        """Return all sites but some."""
        return tuple(site for site in self._sites if site not in sites)

    def _suspects(self, diagnostics: str) -> tuple[KeptSite, ...]:
        """Return the sites that diagnostics name, where the variant compiles without these; else none.

        The compiler may end at the first dispatch that fails, and name the next one without it.
        """
        suspects, named = tuple[KeptSite, ...](), named_in(diagnostics, self._placed, self.variant.library)
        while not {*named} <= {*suspects}:
            suspects = tuple(site for site in self._sites if site in suspects or site in named)
            if suspects == self._sites:
                return ()
            if not (said := self._said(self._but(suspects))):
                return suspects
            named = named_in(said, self._placed, "")
        return ()

    def _said(self, changed: Sequence[KeptSite]) -> str:
        """Return what is said of the variant where only some sites change; empty where it compiles."""
        if self._tries <= 0 or not self.has_time():
            return NO_TIME_TO_COMPILE
        self._tries -= 1
        attempt = self.attempt(self.variant.plan.keeping(self._but(changed)))
        self.found = attempt.built or self.found
        return "" if attempt.built is not None else attempt.diagnostics or attempt.why


def last_first(sites: Sequence[StagedSite]) -> list[StagedSite]:
    """Return sites in the order in which they are tried: those of the last rewrite first.

    A plan is told from others by its last rewrite. What a flag changes comes at the end: a flag does more than that.
    """
    of_flags = {made.symbol for made in FLAG_SITES.values()}
    backwards = list(reversed(sites))
    return sorted(backwards, key=lambda site: site.rewrite in of_flags)


def named_in(diagnostics: str, sites: Sequence[StagedSite], library: str) -> tuple[KeptSite, ...]:
    """Return the sites that the compiler's diagnostics name, by the source or by the library; none where they do not.

    Args:
        library: The library with the rewrites of the sites, as it was compiled.
    """
    places = {_place(*found.groups()) for found in _DIAGNOSED.finditer(diagnostics)}
    functions = set(_functions_at({line for file, line, _ in places if file == LIBRARY}, library))
    return tuple(
        KeptSite(site.rewrite, site.label)
        for site in sites
        if site.function in functions or places & {*_places_of(site.locations)}
    )


def _places_of(locations: Collection[str]) -> Iterator[Place]:
    for location in locations:
        yield from (_place(*found.groups()) for found in _LOCATION.finditer(location))


def _place(file: str, line: str, column: str) -> Place:
    return Path(file).name, int(line), int(column)


def _functions_at(numbers: Collection[int], library: str) -> Iterator[str]:
    """Yield the functions of a library that some lines are in."""
    lines = library.splitlines()
    for number in numbers:
        above = (_FUNCTION.match(line) for line in reversed(lines[:number]))
        if found := next(filter(None, above), None):
            yield found[1]
