"""Judges predictions of variants: each network is left out, and predicted from the others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Columns, ResultColumn, ResultTable, Unit
from benchmarks.networks.variants.measuring import MeasuredNetwork, MeasuredVariant
from benchmarks.strategies.verdict import Verdict
from mlir_sched.database.record import StoredProgram
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites.offered import offered_rewrites
from mlir_sched.program.variants.early_decisions import ATTENTION, DECIDED_EARLY, FAR_FASTER, LAYOUT, REPLACED_SHARE
from mlir_sched.program.variants.early_decisions import CLEARLY_FASTER as ENOUGH
from mlir_sched.program.variants.foreseeing import MOST_COMPILED, replaces, worth
from mlir_sched.program.variants.rewritten import flagged_variants
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import Target
from mlir_sched.tuning.variant_prediction import predicted

NEAR = 1.02
"""A variant that takes at most this many times as long as the best one is as good."""
LEAST_NETWORKS, LEAST_HITS, MOST_SECONDS = 12, 11 / 12, 0.6
"""What is asked of predictions: of how many networks, in which share of them a variant among the first two has to be
the best on inputs of all sizes, and the most seconds of compiling and timing variants, relative to those without
predictions."""
SHARES = {LAYOUT: "share of channels first", ATTENTION: "share of attention"}
ALL = "all"
"""The row of the table that stands for all networks."""


@dataclass(frozen=True)
class Judged:
    """What becomes of one network on inputs of one size, or of all.

    Attributes:
        best: The best variant.
        taken: The variants that are compiled by the prediction.
        hits: Whether one of them, or the default, is as good as the best.
        seconds, today_s: Seconds to compile and time variants with the prediction and without.
    """

    network: str
    part: int
    best: str
    taken: tuple[str, ...]
    hits: bool
    seconds: float
    today_s: float


def plans_on(target: Target) -> dict[str, Plan]:
    """Return all plans that variants of programs may have on a target, by name."""
    flagged = [variant.plan for variant in flagged_variants(target)]
    offered = map(Plan, offered_rewrites(target_kind(target.name).rewrites, target.cores))
    return {plan.name: plan for plan in (*flagged, *offered)}


def judged(networks: Sequence[MeasuredNetwork], plans: Mapping[str, Plan]) -> list[Judged]:
    """Return what becomes of networks, each predicted from those with other names.

    Args:
        plans: All plans, by name (:func:`plans_on`).
    """
    return [_judged(each, [other for other in networks if other.network != each.network], plans) for each in networks]


def _judged(own: MeasuredNetwork, others: Sequence[MeasuredNetwork], plans: Mapping[str, Plan]) -> Judged:
    known = [variant for variant in own.variants if variant.name in plans]
    asked, by_name = [plans[each.name] for each in known], {each.name: each for each in known}
    found = predicted([_stored(other) for other in others], own.features, asked)
    taken = _first(found.order, by_name, plans)
    compiling = [each for each in taken if each.ratio is not None]
    ratios = {each.name: each.ratio for each in known if each.ratio is not None}
    worths = {"default": 1.0, **worth(ratios, asked)}
    best = max(worths, key=worths.__getitem__)
    reached = max([1.0, *(worths[each.name] for each in compiling)])
    return Judged(
        own.network,
        own.part,
        best,
        tuple(each.name for each in compiling),
        NEAR * reached >= worths[best],
        _seconds(taken),
        _seconds([by_name[name] for name in today(own, asked) if name in by_name]),
    )


def _stored(network: MeasuredNetwork) -> StoredProgram:
    ratios = {each.name: each.ratio or 0.0 for each in network.variants}
    return StoredProgram("", (network.network, str(network.part)), {}, 1.0, network.features, ratios)


def _first(
    order: Sequence[str], variants: Mapping[str, MeasuredVariant], plans: Mapping[str, Plan]
) -> list[MeasuredVariant]:
    """Return the variants that are tried in an order until enough compile."""
    tried, compiled = list[MeasuredVariant](), list[Plan]()
    for name in order:
        if len(compiled) == MOST_COMPILED:
            break
        if not any(replaces(plan, plans[name]) for plan in compiled):
            tried.append(variants[name])
            compiled += [plans[name]] if variants[name].compiles else []
    return tried


def today(network: MeasuredNetwork, plans: Sequence[Plan]) -> list[str]:
    """Return the variants that a run without predictions compiles where time does not matter.

    Those that may dominate come first; where one does, only what refines it follows (``variants/choosing.py``).
    """
    ratios = {each.name: each.ratio or 0.0 for each in network.variants}
    early = [name for name in DECIDED_EARLY if name in ratios]
    dominant = [name for name in early if ratios[name] >= _dominates_from(network, name)]
    rest = [plan.name for plan in plans if plan.name not in early and (not dominant or plan.refines in dominant)]
    return [*early, *rest]


def _dominates_from(network: MeasuredNetwork, name: str) -> float:
    return ENOUGH if network.features[SHARES[name]] >= REPLACED_SHARE else FAR_FASTER


def _seconds(variants: Sequence[MeasuredVariant]) -> float:
    return sum(each.build_s + each.timing_s for each in variants)


def verdict(found: Sequence[Judged]) -> tuple[Verdict, tuple[str, ...]]:
    """Return what becomes of predictions, and what speaks against them as the default.

    The gate asks for the ends of five-minute runs, too, which are not compared here.
    """
    networks = dict.fromkeys(each.network for each in found)
    hits = [name for name in networks if all(each.hits for each in found if each.network == name)]
    against = ["whole runs with and without predictions are not compared yet"]
    if len(networks) < LEAST_NETWORKS:
        against.append(f"{len(networks)} of {LEAST_NETWORKS} networks measured")
    if len(hits) < LEAST_HITS * len(networks):
        against.append(f"the best variant is among the first two in {len(hits)} of {len(networks)} networks")
    if (share := _share(found)) > MOST_SECONDS:
        against.append(f"{share:.2f} of the seconds, where the gate asks for {MOST_SECONDS:g}")
    return Verdict.OPTION if against else Verdict.DEFAULT, tuple(against)


def _share(found: Sequence[Judged]) -> float:
    return sum(each.seconds for each in found) / sum(each.today_s for each in found)


def results_table(found: Sequence[Judged], threads: int, publishing: Publishing) -> ResultTable:
    """Return a table with a row per network and size, and one of all."""
    gate, against = verdict(found)
    hits = sum(each.hits for each in found)

    def of_one(show: Callable[[Judged], str]) -> Callable[[Sequence[Judged]], str]:
        return lambda rows: show(rows[0]) if len(rows) == 1 else ""

    columns: Columns[Sequence[Judged]] = {
        ResultColumn("best variant"): of_one(lambda each: each.best),
        ResultColumn("compiled by the prediction"): of_one(lambda each: ", ".join(each.taken) or "none"),
        ResultColumn("hits", Unit.COUNT): lambda rows: sum(each.hits for each in rows),
        ResultColumn("seconds", Unit.SECONDS): lambda rows: sum(each.seconds for each in rows),
        ResultColumn("seconds without", Unit.SECONDS): lambda rows: sum(each.today_s for each in rows),
        ResultColumn("seconds over those without", Unit.RATIO): _share,
        ResultColumn("verdict"): lambda rows: str(gate) if len(rows) == len(found) else "",
    }
    rows = [(f"{each.network}, inputs of 1 / {each.part}", [each]) for each in found]
    return publishing.table(
        name=f"strategies-variants-{threads}-threads",
        question="search",
        title="Variants predicted from other networks",
        threads=threads,
        seeds=(),
        spread="none",
        rows_are="model",
        columns=columns,
        rows=[*rows, (ALL, found)],
        notes=(
            f"A hit: one of the first {MOST_COMPILED} variants, or the default, takes at most {NEAR:g} times as long "
            f"as the best, without scripts; {hits} of {len(found)}. A variant that refines another one counts as that.",
            "Seconds to compile variants and to time each beside the default; without: what a run compiles that is not "
            "short of time.",
            *(f"no default: {why}" for why in against),
        ),
    )
