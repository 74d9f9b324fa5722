"""The variants of a program that are worth tuning: what of them can have scripts, and how fast they are without."""

from collections.abc import Collection, Sequence

from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.early_decisions import CLEARLY_FASTER, is_far_faster
from mlir_sched.space.space import Space
from mlir_sched.targets.kind import DEFAULT
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task

SAVED_S = 50e-6
"""An untuned variant on ``local-sync`` is tuned if its call takes at most this many seconds more than that of the
fastest variant: scripts make the difference smaller, and a call of IREE's task system costs 10 to 30 us anyhow (IREE
3.13, two workers)."""
TUNABLE = 0.5
"""Least share of a variant's untuned time in dispatches that can have scripts, below which the variant is not tuned by
time: scripts could make it at most twice as fast. Under IREE's data tiling most products can have none."""


def tunable_variants(
    built: Sequence[BuiltVariant], space: Space, target: Target, dominant: Collection[str] = ()
) -> list[BuiltVariant]:
    """Return the variants that are worth tuning, the fastest untuned one first.

    Each has a dispatch to tune; of several variants with the same dispatches only the fastest is returned. The default
    comes before variants that are not clearly faster, and is left out where another is far faster. After the first
    variant, rewrites come before other flags: they were found to suit the program, and IREE's own code for the ops that
    they make may be many times slower than a script's. A variant that refines another one takes its place, and its
    rank: without scripts it is slow. A variant in the calling thread is returned only where several threads save it
    :data:`SAVED_S` at most.

    Args:
        built: The variants, the default first.
        dominant: Names of the variants that dominate all others, some of them not in ``built`` but refined.
    """
    ratios = {b.variant.plan.whole.name: b.timing.ratio for b in built if b.timing is not None}

    def rank(variant: BuiltVariant) -> float:
        plan = variant.variant.plan
        known = [ratios[name] for name in (plan.whole.name, plan.refines) if name in ratios]
        ratio = max(known, default=0.0)
        return ratio * CLEARLY_FASTER if variant is built[0] else ratio

    tunable = [b for b in built if b.timing is not None and any(can_tune(t, space, target) for t in b.model.tasks)]
    least_s = min((b.timing.median_s for b in tunable if b.timing), default=0.0)
    tunable = [
        b for b in tunable if not b.variant.plan.local_sync or (b.timing and b.timing.median_s <= least_s + SAVED_S)
    ]
    refined = {b.variant.plan.refines for b in tunable}
    tunable = [b for b in tunable if b.variant.plan.whole.name not in refined]
    others = [b for b in tunable if b is not built[0]]
    names = [b.variant.plan.refines or b.variant.plan.whole.name for b in others]
    if any(n in dominant or is_far_faster(n, rank(b), built[0]) for n, b in zip(names, others, strict=True)):
        tunable = others
    fastest: dict[tuple[object, ...], BuiltVariant] = {}
    for variant in sorted(tunable, key=rank, reverse=True):
        dispatches = tuple((t.dispatch or t.name, t.inputs, t.outputs, t.weight) for t in variant.model.tasks)
        fastest.setdefault((variant.variant.plan.local_sync, *dispatches), variant)
    first, others = [*fastest.values()][:1], [*fastest.values()][1:]
    return [*first, *sorted(others, key=lambda built: not built.variant.plan.rewrites)]


def tunable_share(built: BuiltVariant, space: Space, target: Target) -> float | None:
    """Return the share of a variant's untuned time, 0 to 1, in tunable dispatches; None without a profile."""
    if built.profile is None:
        return None
    shares = built.profile.shares(task.name for task in built.model.tasks)
    tunable = dict.fromkeys(task.name for task in built.model.tasks if can_tune(task, space, target))
    return sum(shares[name] for name in tunable)


def with_tunable_time(built: Sequence[BuiltVariant], space: Space, target: Target) -> list[BuiltVariant]:
    """Return the variants that may become the fastest in the time of a search.

    A variant with less than :data:`TUNABLE` of its time in tunable dispatches is about as fast as it can become, and
    competes at the end as it is; all are returned where no variant has more. A variant without a profile counts as
    tunable. The default is not returned beside a refinement, such as packed weights, which has scripts for as many ops.
    """
    shares = [tunable_share(b, space, target) for b in built]
    found = [b for b, share in zip(built, shares, strict=True) if share is None or share >= TUNABLE] or list(built)
    refined = any(b.variant.plan.refines for b in found)
    return [b for b in found if not (refined and b.variant.plan.base.name == DEFAULT)]


def can_tune(task: Task, space: Space, target: Target) -> bool:
    """Say whether the space has a program for a task."""
    return task.dispatch is not None and bool(space.sketches(task.dispatch, target))
