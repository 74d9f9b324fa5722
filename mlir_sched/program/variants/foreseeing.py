"""Which variants have a chance, given how fast each is predicted to be."""

from collections.abc import Mapping, Sequence

from mlir_sched.program.plan import Plan
from mlir_sched.program.variants.compile_policy import Foreseen
from mlir_sched.targets.kind import DEFAULT

HOPELESS = 1.25
"""A variant that is predicted to take more than this many times as long as the best one is not compiled."""
MOST_COMPILED = 2
"""Most variants that are compiled beside the default where variants are predicted."""


def worth(ratios: Mapping[str, float], plans: Sequence[Plan], chosen: str = "") -> dict[str, float]:
    """Return what variants of a program were worth, by name, of those that were measured.

    That is how many times as fast as the program each was without scripts. A variant that refines another one is slow
    without scripts: it is worth at least as much as that one, and at least as much as the program where that one was
    not measured. What a run ended with is worth as much as the best, the program itself included; what fails, nothing.

    Args:
        ratios: What was measured, by name; 0 of what fails.
        plans: The plans of the variants that may be asked for.
        chosen: Name of the variant that a run ended with; empty for none.
    """
    known = {**ratios, DEFAULT: 1.0}
    least = {plan.name: known.get(plan.refines, 1.0) if plan.refines else 0.0 for plan in plans}
    found = {name: max(known[name], least[name]) if known[name] else 0.0 for name in least if name in known}
    return found | ({chosen: max(known.values())} if found.get(chosen) else {})


def replaces(plan: Plan, other: Plan) -> bool:
    """Say whether a plan takes the place of another one: it refines that, or has its rewrites and more."""
    return plan.refines == other.name or plan.extends(other)


def foreseen(plans: Sequence[Plan], ratios: Mapping[str, float], programs: int) -> Foreseen:
    """Return the variants that have a chance, in the order in which they are worth to be compiled.

    What takes another one's place comes before that, which is compiled only where the first is not. After the first
    variant, rewrites come before other flags, as when variants are tuned (``tunability.py``).

    Args:
        plans: All variants but the default.
        ratios: How many times as fast as the default each is predicted to be, by name; one without a prediction counts
            as as fast as the default.
        programs: From how many programs that follows.
    """
    expected = {plan.name: ratios.get(plan.name, 1.0) for plan in plans}
    best = max([1.0, *expected.values()])
    hopeful = [plan for plan in plans if HOPELESS * expected[plan.name] >= best]

    def replaced(plan: Plan) -> bool:
        return any(replaces(other, plan) for other in hopeful)

    def rank(plan: Plan) -> tuple[bool, float, int]:
        return replaced(plan), -expected[plan.name], -len(plan.rewrites)

    in_order = sorted(hopeful, key=rank)
    others = sorted(in_order[1:], key=lambda plan: (replaced(plan), not plan.rewrites))
    return Foreseen(tuple(plan.name for plan in (*in_order[:1], *others)), ratios, programs)
