"""The decisions about a whole program, as one trace: its plan, and the algorithms of its sites."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mlir_sched.program.plan import KeptSite, Plan, Site
from mlir_sched.sampling import Categorical, Value
from mlir_sched.trace import OnIllegal, Recorder, Trace

PROGRAM = "program"
"""What stands for a sketch in the trace of a program."""
VARIANT = "variant"
"""The decision between compiler flags and rewrites of the whole program."""
CHANGED, KEPT = "changed", "as it was"
"""The values of a decision about a site that a rewrite, or a flag, changes or leaves as it is."""


@dataclass(frozen=True)
class ProgramSpace:
    """The decisions that a program has.

    Attributes:
        plans: IREE's flags, and rewrites without other algorithms; the default first.
        sites: The sites that another algorithm can compute in some plans.
    """

    plans: tuple[Plan, ...] = (Plan(),)
    sites: tuple[Site, ...] = ()

    def trace(self, values: Mapping[str, Value], kept: Sequence[KeptSite] = ()) -> Trace:
        """Return the trace of given decisions; a site without a decision has the algorithm that needs none.

        Args:
            kept: The sites that stay as they are; all others have no decision.

        Raises:
            IllegalTraceError: The program has no such decision, or not this value of it.
        """
        plan = self._plan(values)
        sites = [site for site in self.sites if plan is not None and plan.has_choice(site)]
        of_kept = {kept_decision(site): KEPT for site in kept}
        own = {decision(site): site.kind.own for site in sites}
        recorder = Recorder({**own, **values, **of_kept}, on_illegal=OnIllegal.REJECT)
        recorder.decide(VARIANT, Categorical(tuple(each.name for each in self.plans)))
        for site in sites:
            recorder.decide(decision(site), Categorical((site.kind.own, site.kind.other)))
        for name in of_kept:
            recorder.decide(name, Categorical((CHANGED, KEPT)))
        return recorder.finish(PROGRAM)

    def trace_of(self, plan: Plan) -> Trace:
        """Return the trace of a plan; where it runs, in the calling thread or not, is no part of the program."""
        algorithms = {decision(site): site.kind.other for site in plan.algorithms}
        return self.trace({VARIANT: plan.base.whole.name} | algorithms, plan.kept)

    def decided(self, values: Mapping[str, Value]) -> Plan | None:
        """Return the plan that decisions lead to; None where the program has no such plan.

        Decisions about other sites than those with a choice do not count, and no site stays as it is: which sites
        rewrites have only they can tell (:func:`kept_by`).
        """
        plan = self._plan(values)
        if plan is None:
            return None
        sites = {decision(site): site for site in self.sites if plan.has_choice(site)}
        chosen = (sites[name] for name, value in values.items() if name in sites and value == sites[name].kind.other)
        return plan.with_algorithms(chosen)

    def _plan(self, values: Mapping[str, Value]) -> Plan | None:
        return next((plan for plan in self.plans if plan.name == values.get(VARIANT)), None)


DEFAULT_ONLY = ProgramSpace()
"""The decisions about a program without variants."""


def kept_by(values: Mapping[str, Value], sites: Iterable[KeptSite]) -> tuple[KeptSite, ...]:
    """Return those of some sites that decisions leave as they are."""
    return tuple(site for site in sites if values.get(kept_decision(site)) == KEPT)


def kept_decision(site: KeptSite) -> str:
    """Return the name of the decision whether a site stays as it is."""
    return f"site {site.name}"


def decision(site: Site) -> str:
    """Return the name of the decision between the algorithms of a site."""
    return f"algorithm {site.name}"
