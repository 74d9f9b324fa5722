"""The variants of a model, compiled and timed one after the other, until one of them dominates all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from mlir_sched.compiler.binary_hash import program_hash
from mlir_sched.compiler.reasons import reason
from mlir_sched.errors import MlirSchedError
from mlir_sched.program.building import Attempt, fastest, profiled
from mlir_sched.program.plan import KeptSite, Plan, Site
from mlir_sched.program.program_space import DEFAULT_ONLY, KEPT, VARIANT, ProgramSpace
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.compile_policy import (
    CHOSEN_BEFORE,
    EXCEPT_FOR,
    EXTENDED,
    FORESEEN_BEHIND,
    NOT_FORESEEN,
    REFINED_AT_ONCE,
    CompilePolicy,
    Foreseen,
    Sites,
)
from mlir_sched.program.variants.early_decisions import DECIDED_EARLY, DOMINATED, favoured_by_profile, is_far_faster
from mlir_sched.program.variants.foreseeing import MOST_COMPILED, replaces
from mlir_sched.program.variants.mending import Mending
from mlir_sched.program.variants.programs import Programs
from mlir_sched.program.variants.rewritten import RewrittenVariants, flagged_variants
from mlir_sched.program.variants.weight_bound import NO_BOUND, WeightBound
from mlir_sched.targets.kind import DATA_TILING, DEFAULT
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model
from mlir_sched.tuned_folder.result import Repair

SHORT_S = 5e-3
"""Seconds per call above which a program is not tried on ``local-sync``: waking the workers is little of that time."""


@dataclass(frozen=True)
class BuiltVariants:
    """The variants of one model.

    Attributes:
        built: The variants that IREE compiles, the default first.
        left_out: Why variants that do not compile or that cannot be timed do not compete, by name, in one short
            sentence each.
        internal_errors: Tracebacks of mlir-sched's own errors, each of which cost one variant.
        space: The decisions between variants that the program has.
        dominant: Names of the variants that dominate all others, whether they are in ``built`` or only refined.
        failed: Names of the variants that do not compile, fail when they run, or compute other results.
        repair: What was repaired of the program, in all variants; None for nothing.
        foreseen: What was predicted of the variants; None for nothing.
    """

    built: tuple[BuiltVariant, ...]
    left_out: Mapping[str, str]
    internal_errors: tuple[str, ...] = ()
    space: ProgramSpace = DEFAULT_ONLY
    dominant: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    repair: Repair | None = None
    foreseen: Foreseen | None = None

    @property
    def tracebacks(self) -> tuple[str, ...]:
        """Tracebacks of all of mlir-sched's own errors, those that cost single dispatches included."""
        return (*self.internal_errors, *(text for built in self.built for text in built.model.internal_errors))

    def with_variant(self, built: BuiltVariant, left_out: Mapping[str, str]) -> BuiltVariants:
        """Return the variants with one that a search has composed, unless it is there, and with further reasons."""
        known = built.variant in [each.variant for each in self.built]
        all_built = self.built if known else (*self.built, built)
        return replace(self, built=all_built, left_out={**self.left_out, **left_out})

    def profiled(self, emitted: BuiltVariant, target: Target) -> BuiltVariants:
        """Return the variants with profiles of the default and of the one that is emitted."""
        known = [emitted if built.variant == emitted.variant else built for built in self.built]
        wanted = (self.built[0].variant, emitted.variant)
        return replace(self, built=tuple(profiled(b, target) if b.variant in wanted else b for b in known))

    def of(self, variant: Variant) -> BuiltVariant:
        """Return a variant as it was built."""
        return next(built for built in self.built if built.variant == variant)


def build_variants(
    programs: Programs,
    policy: CompilePolicy | None = None,
    *,
    local_sync: bool = True,
    most_weights: float | None = None,
) -> BuiltVariants:
    """Compile a model under every variant of the target and find out what all of them take, relative to the default.

    The variants of :data:`DECIDED_EARLY` come first: where one of them makes the program far faster, only variants that
    refine it follow. In a hurry, a refinement may be compiled at once, without the variant itself, where the profile of
    the default speaks for it. A variant that compiles to the same code as an earlier variant is neither in ``built``
    nor in ``left_out``. On several threads a short program is also timed in the calling thread, under every variant.

    Where the policy predicts variants, the first of them that compile are all that are compiled beside the default.

    A program of a form that IREE compiles wrong is repaired in all variants, the default too; plain ``iree-compile``'s
    code is run once to say how it differs.

    Args:
        policy: Says which variants are compiled; all of them by default, unless one dominates the others.
        local_sync: Whether programs may run in the calling thread when the target has several threads.
        most_weights: Most bytes of weights that calls may read, relative to those of the default; None for no bound.

    Raises:
        ModelCompileError: IREE does not compile the default variant.
        UserError: The file is no program that can be tuned, or the default variant cannot be run or checked.
    """
    policy = policy or CompilePolicy()
    default, *flagged = flagged_variants(programs.source.target)
    with programs.rewriting() as found:
        plain = programs.build(default)
        rewritten = found()
    repair = rewritten.repair
    default, *flagged = map(repair.of, (default, *flagged))
    first = programs.first(programs.build(default) if repair.script else plain)
    found_wrong = programs.judged(Repair(repair.forms), plain, first) if repair.script else None
    bound = WeightBound.of(most_weights, first.model)
    choosing = _Choosing(programs, policy, (*flagged, *rewritten.variants), (first,), bound)
    choosing.run(rewritten)
    if local_sync and programs.source.target.cores > 1:
        choosing.time_in_calling_thread()
    plans = tuple(variant.plan for variant in (default, *choosing.variants))
    return BuiltVariants(
        choosing.timed,
        {**choosing.left_out, **rewritten.left_out},
        (*rewritten.internal_errors, *choosing.errors),
        ProgramSpace(plans, rewritten.sites),
        tuple(choosing.dominant),
        tuple(choosing.failed),
        found_wrong,
        choosing.foreseen,
    )


@dataclass
class _Choosing:
    """The variants of one model while they are compiled and timed.

    Attributes:
        programs, policy: As the arguments of :func:`build_variants`.
        variants: All variants but the default.
        timed: The variants that were compiled so far, the default first; all were timed once the run is over.
        bound: The bound of their weights.
        left_out: Why variants are left out so far, by name.
        errors: Tracebacks of mlir-sched's own errors so far.
        dominant: Names of the variants that dominate all others.
        failed: Names of the variants that failed so far, without the sites that stay as they are.
        foreseen: What is predicted of the variants; None for nothing.
    """

    programs: Programs
    policy: CompilePolicy
    variants: Sequence[Variant]
    timed: tuple[BuiltVariant, ...]
    bound: WeightBound = NO_BOUND
    left_out: dict[str, str] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    dominant: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    foreseen: Foreseen | None = None

    def run(self, rewritten: RewrittenVariants) -> None:
        """Compile and time the variants."""
        self.policy.note_costs(call_s=0.0, build_s=self.default.build_s)
        if self.policy.foresees or self.policy.hurried:
            self._learn_how_long_calls_take()
        chosen = self._chosen_before(rewritten.sites)
        self.foreseen = self.policy.foreseen(self.default, self.variants) if self.default.profile else None
        if self.foreseen is not None:
            self._take_foreseen(self.foreseen, chosen)
        else:
            self._take_all(chosen)
        if self.policy.trusts_earlier_runs:
            self._trust(chosen)

    def _take_all(self, chosen: Variant | None) -> None:
        """Compile and time first what may dominate all others, then the others."""
        early, favoured = [variant for variant in self.variants if variant.name in DECIDED_EARLY], ""
        if self.policy.hurried and self.default.profile is not None:
            names = favoured_by_profile(self.default, [variant.name for variant in early])
            favoured = self.policy.favoured(next(iter(names), ""))
            early = [variant for variant in early if variant.name == favoured]
        self._settle(chosen, [v for v in self.variants if favoured and (v.name == favoured or _refines(v, favoured))])
        if favoured and self.policy.refines_at_once():
            self._refine_at_once(favoured, chosen)
        if not self.dominant:
            self._decide_early(early)
        self._rest(chosen)

    def _settle(self, chosen: Variant | None, otherwise: Sequence[Variant]) -> None:
        """Tell the policy which variants something speaks for: an earlier run, which may have kept the default."""
        kept = self.policy.known(self.default.model).get(VARIANT) == DEFAULT
        settled: Sequence[Variant] = [chosen] if chosen else [] if kept else otherwise
        self.policy.settle([variant.plan.whole.name for variant in settled])

    def _trust(self, chosen: Variant | None) -> None:
        """Have what was settled before it was timed dominate all others.

        That is what an earlier run chose, else what refines a variant: how fast this is without scripts says nothing.
        """
        plans = [built.variant.plan for built in self.timed[1:] if built.timing is not None]
        trusted = [p for p in plans if (p.whole == chosen.plan.whole if chosen else p.refines)]
        self.dominant = [*dict.fromkeys((*self.dominant, *(p.refines or p.whole.name for p in trusted)))]

    @property
    def default(self) -> BuiltVariant:
        """The default variant."""
        return self.timed[0]

    def time_in_calling_thread(self) -> None:
        """Time the short programs in the calling thread, too, as further variants."""
        now = [b.variant.name for b in self.timed if b.timing is not None and b.timing.median_s <= SHORT_S]
        names = self.policy.short(now)
        short = [b for b in self.timed if b.variant.name in names]
        if self.default in short:
            there = [replace(built, variant=built.variant.in_calling_thread()) for built in short]
            (_, *timed), failed = self.programs.time([self.default, *there])
            self.timed, self.left_out = (*self.timed, *timed), self.left_out | failed

    def _learn_how_long_calls_take(self) -> None:
        """Profile the default, or time it where IREE records nothing, and tell the policy how long a call takes."""
        first = self.programs.profiled_first(self.default)
        if first.profile is None:
            (first,), _ = self.programs.time([first])
        self.timed = (first,)
        call_s = first.profile.total_s if first.profile else first.call_s
        self.policy.note_costs(call_s=call_s, build_s=first.build_s)

    def _refine_at_once(self, name: str, chosen: Variant | None) -> None:
        """Compile what refines a variant, the first one that compiles and runs, and time it beside the default.

        How fast this is says nothing yet, as packed weights are slow without scripts.
        """
        known = [variant for variant in (chosen, *self.variants) if variant is not None]
        refinements = [variant for variant in known if _refines(variant, name)]
        for variant in sorted(refinements, key=lambda variant: (variant is not chosen, -len(variant.plan.rewrites))):
            if built := self._build([variant], chosen):
                self._time(self.default, built)
            last = self.timed[-1]
            if last.variant.plan.whole == variant.plan.whole and last.timing is not None:
                self.dominant, self.left_out[name] = [name], REFINED_AT_ONCE
                return

    def _take_foreseen(self, foreseen: Foreseen, chosen: Variant | None) -> None:
        """Compile and time the variants that a prediction speaks for, behind what an earlier run chose."""
        by_name = {variant.name: variant for variant in self.variants}
        wanted = _behind(chosen, [by_name[name] for name in foreseen.order if name in by_name])
        self.policy.favoured(next((variant.plan.whole.name for variant in wanted), ""))
        self._settle(chosen, wanted)
        built = self._build(wanted, chosen, most=MOST_COMPILED)
        if built or self.default.timing is None:
            self._time(self.default, distinct([self.default, *built])[1:])
        for each in (b for b in self.timed[1:] if b.timing is not None):
            plan = each.variant.plan
            expected = foreseen.ratios.get(plan.whole.name, 0.0) if plan.refines else 0.0
            self._note_dominance(plan.refines or plan.whole.name, max(each.measured.ratio, expected))
        done = {*self.left_out, *(b.variant.plan.whole.name for b in built)}
        others = [name for name in by_name if name not in done]
        self.left_out |= {name: FORESEEN_BEHIND if name in foreseen.ratios else NOT_FORESEEN for name in others}

    def _note_dominance(self, name: str, ratio: float) -> None:
        """Note whether a variant that is so many times as fast as the default dominates all others."""
        if self.policy.dominates(name, far_faster=is_far_faster(name, ratio, self.default)):
            self.dominant.append(name)

    def _decide_early(self, early: Sequence[Variant]) -> None:
        """Compile and time variants that may dominate all others."""
        if built := self._build(early):
            self._time(self.default, built)
            self.timed = (self.programs.profiled(self.default), *self.timed[1:])
            ratios = {b.variant.plan.whole.name: b.timing.ratio for b in self.timed[1:] if b.timing is not None}
            for name in [variant.name for variant in early if variant.name in ratios]:
                self._note_dominance(name, ratios[name])

    def _rest(self, chosen: Variant | None) -> None:
        """Compile and time the variants that have a chance beside those that were timed."""
        done = {*self.left_out, *(b.variant.plan.whole.name for b in self.timed)}
        others = [variant for variant in self.variants if variant.name not in done]
        for variant in others if self.dominant else ():
            if variant.plan.refines not in self.dominant:
                self.left_out[variant.name] = DOMINATED.format(" and ".join(self.dominant))
        wanted = [variant for variant in others if variant.name not in self.left_out]
        if chosen and chosen.plan.whole.name not in done:
            wanted = _behind(chosen, wanted)
        built = self._build(_in_order(wanted, chosen), chosen)
        if self.dominant:
            if built:
                self._time(fastest(self.timed), built)
        elif built or self.default.timing is None:
            others_built = distinct([self.default, *built, *self.timed[1:]])[1:]
            self.timed = self.timed[:1]
            self._time(self.default, others_built)
        else:
            self.timed = tuple(distinct(self.timed))

    def _build(
        self, variants: Sequence[Variant], chosen: Variant | None = None, most: int | None = None
    ) -> list[BuiltVariant]:
        """Compile variants, in their order, without timing them; those that fail or are not wanted are left out.

        Args:
            chosen: The one that an earlier run decided on; None without such decisions.
            most: How many are enough, none of them in the place of another one; None for all.
        """
        built, model = list[BuiltVariant](), self.default.model
        for variant in variants:
            if len(built) == most:
                break
            if most is not None and any(replaces(b.variant.plan, variant.plan) for b in built):
                continue
            others = [b.variant for b in (*self.timed[1:], *built)]
            extended = any(other.plan.extends(variant.plan) for other in others)
            has_chosen = chosen is not None and chosen.plan.whole in [other.plan.whole for other in others]
            has_rival = has_chosen and not self.policy.trusts_earlier_runs
            rival, name = EXTENDED if extended else CHOSEN_BEFORE if has_rival else "", variant.plan.whole.name
            policy = self.policy
            if not (policy.should_compile_beside(name, extended=extended) if rival else policy.should_compile(name)):
                self.left_out[name] = rival or self.policy.why_not
                continue
            attempt = self.programs.attempt(variant, model)
            found = self._mended(variant, attempt, model) if attempt.diagnostics else attempt.built
            too_large = self.bound.why_above(found.model) if found else ""
            if found and not too_large:
                built.append(found)
                continue
            self.left_out[variant.name] = too_large or attempt.why
            self.errors += [attempt.internal_error] if attempt.internal_error else []
            has_failed = not (found or attempt.internal_error or attempt.is_limited)
            self.failed += [variant.plan.whole.name] if has_failed else []
            self.policy.note_failure(variant.name)
        return built

    def _mended(self, variant: Variant, failed: Attempt, model: Model) -> BuiltVariant | None:
        """Return a variant that does not compile without the sites at fault; None where none is found."""

        def attempt(plan: Plan) -> Attempt:
            try:
                return self.programs.attempt(self.programs.planned(plan), model)
            except MlirSchedError as error:
                return Attempt(None, reason(str(error)))

        mending = Mending(variant, self.programs.placed_sites, attempt, self.policy.has_time_again)

        def find() -> Sites:
            found = mending.mended(failed.diagnostics)
            return [[site.step, site.place] for site in found.variant.plan.kept] if found else []

        sites = [KeptSite(*names) for names in self.policy.left_as_they_were(variant.name, find)]
        if not sites:
            return None
        mended = mending.found or attempt(variant.plan.keeping(sites)).built
        if mended is not None:
            names = ", ".join(site.name for site in sites)
            self.left_out[variant.plan.whole.name] = EXCEPT_FOR.format(names, failed.why)
        return mended

    def _time(self, reference: BuiltVariant, built: Sequence[BuiltVariant]) -> None:
        """Time variants in turns with one that is among those timed so far."""
        (again, *timed), failed = self.programs.time([reference, *built])
        kept = [again if b is reference and b is self.default else b for b in self.timed]
        self.timed, self.left_out = (*kept, *timed), self.left_out | failed
        self.failed += [each.variant.plan.whole.name for each in built if each.variant.name in failed]

    def _chosen_before(self, sites: Sequence[Site]) -> Variant | None:
        """Return the variant that an earlier run decided on; None without decisions, or if they do not fit the program.

        Args:
            sites: The sites of this program that another algorithm can compute.
        """
        space = ProgramSpace(tuple(variant.plan for variant in self.variants), tuple(sites))
        values = self.policy.known(self.default.model)
        plan = space.decided(values)
        if plan is None:
            return None
        with suppress(MlirSchedError):
            if KEPT in values.values():
                return self.programs.decided(values)
            if plan.algorithms:
                return self.programs.planned(plan)
        return next(variant for variant in self.variants if variant.plan == plan.base)


def _refines(variant: Variant, name: str) -> bool:
    """Say whether a variant refines another one and has the rewrite of that name."""
    return bool(variant.plan.refines) and name in [each.name for each in variant.plan.rewrites]


def _behind(chosen: Variant | None, variants: Sequence[Variant]) -> list[Variant]:
    """Return variants behind the one that an earlier run chose, if there is one, without what it was made from."""
    if chosen is None:
        return list(variants)
    return [chosen, *(v for v in variants if v.plan not in (chosen.plan.whole, chosen.plan.base.whole))]


def _in_order(variants: Sequence[Variant], chosen: Variant | None) -> list[Variant]:
    """Return variants in the order in which they are compiled, as the last ones may find no time left.

    First comes what an earlier run chose, then refinements, those of most rewrites first, as scripts make them fastest;
    of the others IREE's data tiling, which is the fastest of whole networks without scripts.
    """

    def rank(variant: Variant) -> tuple[bool, ...]:
        extended = any(other.plan.extends(variant.plan) for other in variants)
        return variant is not chosen, extended, not variant.plan.refines, variant.name != DATA_TILING

    return sorted(variants, key=rank)


def distinct(built: Sequence[BuiltVariant]) -> list[BuiltVariant]:
    """Return the variants but those that compile to the same code as an earlier one."""
    first = {program_hash(b.vmfb): b.variant.name for b in reversed(built)}
    return [b for b in built if b.variant.name in first.values()]
