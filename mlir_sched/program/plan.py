"""Plans: ways to compile and to run a program, as data; names of plans and of sites are printed from the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from mlir_sched.program.rewrites.padding.separate import FLAG_SITES
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.site_kind import SiteKind
from mlir_sched.targets.kind import DEFAULT
from mlir_sched.targets.target import LOCAL_SYNC


class Placement(Enum):
    """Where a program runs."""

    THREADS = "threads"
    """On the threads of the run."""
    CALLING_THREAD = "calling thread"
    """In the calling thread (IREE's ``local-sync``), even in a run on several threads: waking IREE's workers may take
    longer than the time that they save a short program."""


@dataclass(frozen=True)
class Site:
    """A place of a program that has a choice of algorithms: all ops of one kind and shape.

    Attributes:
        kind: What the ops are.
        shape: Their shape, as the kind prints it.
    """

    kind: SiteKind
    shape: str

    @property
    def name(self) -> str:
        """Unique among the sites of a program: ``56x56x64x64``, ``attention 12x128x128x64``."""
        return self.kind.site_name(self.shape)

    @property
    def other(self) -> str:
        """The site computed by its other algorithm, as reports name that: ``winograd(56x56x64x64)``."""
        return self.kind.rewrite_name(self.shape)


@dataclass(frozen=True)
class KeptSite:
    """Ops that stay as they are in a program whose other ops a rewrite, or a compiler flag, changes.

    Attributes:
        step: What would change them: the symbol of a rewrite, or of what keeps them as without a flag
            (:data:`~mlir_sched.program.rewrites.padding.separate.FLAG_SITES`).
        place: Which of its sites they are, by the label.
    """

    step: str
    place: str

    @property
    def name(self) -> str:
        """Unique among what a plan may leave as it is: ``packed_weights(784x128)``."""
        return f"{self.step}({self.place})"


@dataclass(frozen=True)
class Flags:
    """Compiler flags of a program.

    Attributes:
        name: Unique among the flags of a target (``TargetKind.variants``).
    """

    name: str = DEFAULT
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A way to compile and to run a program, without any script for a dispatch.

    Attributes:
        rewrites: The rewrites of the program before dispatches are formed, one after the other.
        algorithms: The sites that are computed by their other algorithm; all others have their own.
        own_flags: The compiler flags of the plan itself; rewrites may need further ones.
        placement: Where the program runs.
        kept: The sites that stay as they are.
    """

    rewrites: tuple[ProgramRewrite, ...] = ()
    algorithms: tuple[Site, ...] = ()
    own_flags: Flags = Flags()
    placement: Placement = Placement.THREADS
    kept: tuple[KeptSite, ...] = ()

    @property
    def name(self) -> str:
        """Unique among the plans for a program: the rewrites, or else the flags, and where it runs if that is said.

        What stays as it is stands behind the rewrites.
        """
        made = "+".join(step.name for step in self._chosen) or self.own_flags.name
        made = f"{made} except for {', '.join(site.name for site in self.kept)}" if self.kept else made
        return made if self.placement is Placement.THREADS else f"{made} on {LOCAL_SYNC}"

    @property
    def steps(self) -> tuple[ProgramRewrite, ...]:
        """The rewrites as they are made, with those for other algorithms and for what a flag must not change."""
        places, keeping = self.places, FLAG_SITES.values()
        return (*self._chosen, *(made(places[made.symbol]) for made in keeping if made.symbol in places))

    @property
    def _chosen(self) -> tuple[ProgramRewrite, ...]:
        """The rewrites with those for other algorithms."""
        steps = self.rewrites
        for kind in dict.fromkeys(site.kind for site in self.algorithms):
            steps = kind.with_other(steps, tuple(site.shape for site in self.algorithms if site.kind == kind))
        return steps

    @property
    def places(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of what stays as it is, by what would change it."""
        return {step: tuple(s.place for s in self.kept if s.step == step) for step in {s.step for s in self.kept}}

    @property
    def but(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of what the rewrites leave as it is, by their symbols."""
        of_flags = {made.symbol for made in FLAG_SITES.values()}
        return {step: labels for step, labels in self.places.items() if step not in of_flags}

    @property
    def flags(self) -> tuple[str, ...]:
        """All compiler flags, each once."""
        return tuple(dict.fromkeys([*self.own_flags.values, *(flag for step in self.steps for flag in step.flags)]))

    @property
    def changes(self) -> tuple[ProgramRewrite, ...]:
        """The rewrites as they are made, with those that have every place that a flag changes as a site."""
        flags = (made() for flag, made in FLAG_SITES.items() if flag in self.flags)
        return (*self.whole.steps, *flags)

    @property
    def whole(self) -> Plan:
        """The plan that leaves no site as it is."""
        return replace(self, kept=())

    @property
    def base(self) -> Plan:
        """The plan without other algorithms, wherever it runs."""
        return replace(self, algorithms=(), placement=Placement.THREADS)

    @property
    def refines(self) -> str:
        """Name of the plan that this one improves on once dispatches have scripts; empty for none.

        That is its first rewrite alone, or the default, where the last rewrite is slow without scripts.
        """
        first, *others = self._chosen or (None,)
        if first is None or not self._chosen[-1].needs_scripts:
            return ""
        return first.name if others else DEFAULT

    @property
    def local_sync(self) -> bool:
        """Whether the program runs in the calling thread even in a run on several."""
        return self.placement is Placement.CALLING_THREAD

    def extends(self, other: Plan) -> bool:
        """Say whether it has all rewrites of another plan and more, and both are refinements."""
        return bool(self.refines and other.refines) and {*other.rewrites} < {*self.rewrites}

    def has_choice(self, site: Site) -> bool:
        """Say whether a site may be computed by its other algorithm."""
        return site.kind.has_choice(self.rewrites)

    def with_algorithms(self, sites: Iterable[Site]) -> Plan:
        """Return the plan with the other algorithm for some sites that have a choice."""
        return replace(self, algorithms=tuple(sites))

    def keeping(self, sites: Iterable[KeptSite]) -> Plan:
        """Return the plan that leaves some sites as they are."""
        return replace(self, kept=tuple(sites))

    def in_calling_thread(self) -> Plan:
        """Return the same plan in the calling thread."""
        return replace(self, placement=Placement.CALLING_THREAD)

    def threads(self, threads: int) -> int:
        """Return the number of threads that the program runs on, given the number of threads of the run."""
        return 1 if self.local_sync else threads
