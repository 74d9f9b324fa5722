"""Emission: the winners become a library, and the library has to prove itself before the tuned folder changes.

The proof follows the user's steps: ``iree-compile @flags.txt model.mlir`` runs in another folder, every sequence is
found where it was measured and with the code that was measured (``proof.py``), the results are checked, and the time is
measured against plain ``iree-compile`` and the untuned variants. One session decides what is emitted; the reported
figures come from another session, in a fresh process, unless no time is left for it.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mlir_sched.compiler import ModelCompileError
from mlir_sched.compiler.reasons import reason
from mlir_sched.emission.acceptance import NO_LOSS, is_disturbed, is_undisputed, loses, plainest_of_fastest
from mlir_sched.emission.final_measurement import ProgramTimings, undisturbed
from mlir_sched.emission.finalists import Finalists, Winner
from mlir_sched.emission.provenance import tuned_sequence
from mlir_sched.emission.sessions import Sessions, with_scripts_s
from mlir_sched.errors import EnvironmentFailureError
from mlir_sched.library.library import TunedSequence
from mlir_sched.outcome import Timing, Verdict, as_untuned
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.proof import Proven, Prover
from mlir_sched.program.variant import BuiltVariant, Rivals
from mlir_sched.program.variants.choosing import BuiltVariants
from mlir_sched.runner import BaselineError, RunnerOptions
from mlir_sched.targets.target import Target
from mlir_sched.text import speedup
from mlir_sched.tuned_folder.installation import EmittedFiles
from mlir_sched.tuned_folder.result import Loading, ProgramResult
from mlir_sched.tuning.ledger import Ledger

NOT_RUN = "the program does not call it with random inputs, so its results in the program cannot be checked"
"""Why the script of a dispatch is dropped that no run of the program has called."""
UNPROVEN = "its proof failed ({}): {}"
"""Why a variant is left out at the end: the class of the failure, and the cause."""
OF_UNTUNED = (BaselineError, EnvironmentFailureError)
"""Exceptions of a session that say nothing of the program to emit: the untuned program or the machine fails."""


@dataclass(frozen=True)
class Emission:
    """The result to write, proven as a user compiles it.

    Attributes:
        program: The end-to-end result.
        winners: The scripts in the emitted program, by task key.
        reasons: Why the other tasks stay as they are, by task key.
        files: The files to put into the tuned folder (``installation.install``).
        lost_figures: Why the program's figures are those of an earlier session than the last; empty when they are of
            the last.
        left_out: Why variants that were to be emitted are not, by name.
    """

    program: ProgramResult
    winners: Mapping[str, Winner]
    reasons: Mapping[str, str]
    files: EmittedFiles
    lost_figures: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)


def emit(
    model: Path,
    variants: BuiltVariants,
    tuned: BuiltVariant,
    finalists: Finalists,
    options: RunnerOptions,
    target: Target,
    ledger: Ledger | None = None,
    sessions: Sessions | None = None,
) -> Emission:
    """Prove a program with the winners; fall back to flags, or to no change, where it is not shown to be faster.

    Args:
        variants: Every untuned variant; variants that were not timed do not compete.
        ledger: The end of the run, and what sessions take; no limit by default.
        sessions: Says what programs take; by default, they are run.
    """
    sessions = sessions or Sessions()
    with temporary_folder() as scratch:
        prover = Prover(model, Path(scratch), variants.space)
        timed = [built for built in variants.built if built.timing is not None]
        return _Emitter(prover, timed, tuned, finalists, options, target, ledger or Ledger(options), sessions).run()


@dataclass(frozen=True)
class _Emitter:
    """What is emitted of one run, while it is decided.

    Attributes:
        untuned: Programs without scripts that were proven so far, by the variant's name.
        failed: Why variants cannot be proven, whatever scripts they have, by name.
        left_out: Why variants that were to be emitted are not, by name.
    """

    prover: Prover
    variants: Sequence[BuiltVariant]
    tuned: BuiltVariant
    finalists: Finalists
    options: RunnerOptions
    target: Target
    ledger: Ledger
    sessions: Sessions
    untuned: dict[str, Proven] = field(default_factory=dict)
    failed: dict[str, ModelCompileError] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def run(self) -> Emission:
        """Decide what is emitted, and measure the figures to report."""
        winners, reasons = dict(self.finalists.winners), dict(self.finalists.reasons)
        ratios: Mapping[str, Timing] = {}
        while winners:
            start = time.monotonic()
            sequences = {key: tuned_sequence(winner, self.target) for key, winner in winners.items()}
            proven = self._proven(self.tuned, sequences)
            if proven is None:
                reasons |= dict.fromkeys(winners, reason(str(self.failed[self.tuned.variant.name])))
                break
            reasons |= proven.dropped
            winners = {key: winner for key, winner in winners.items() if key in proven.sequences}
            if not winners:
                break
            reported, rejected, ratios = self._judge(proven, winners)
            if reported is not None:
                return self._emission(reported, ratios, proven, winners, reasons)
            if not self.ledger.affords(time.monotonic() - start):  # for another try with fewer scripts
                rejected = {**dict.fromkeys(winners, next(iter(rejected.values()))), **rejected}
            reasons |= rejected
            winners = {key: winner for key, winner in winners.items() if key not in rejected}
        return self._without_scripts(reasons, ratios)

    def _proven(self, variant: BuiltVariant, sequences: Mapping[str, TunedSequence]) -> Proven | None:
        """Return a variant with scripts, proven; None where it cannot be proven even without any."""
        name = variant.variant.name
        if not sequences and name in self.untuned:
            return self.untuned[name]
        if name in self.failed:
            return None
        try:
            proven = self.prover.prove(variant, sequences)
        except ModelCompileError as error:
            self.failed[name], self.left_out[name] = error, UNPROVEN.format(error.kind, reason(str(error)))
            return None
        if not proven.sequences:
            self.untuned[name] = proven
        return proven

    def _judge(
        self, proven: Proven, winners: Mapping[str, Winner]
    ) -> tuple[ProgramTimings | None, dict[str, str], Mapping[str, Timing]]:
        """Return the figures to report, or None; why scripts are dropped, by task key; the timings of all variants.

        Where all variants are clearly slower than the program is expected to be, the session that reports is the only
        one, if it shows that.
        """
        if not_run := self._not_run(proven, winners):
            return None, dict.fromkeys(not_run, NOT_RUN), {}
        if Rivals.of(self.variants, with_scripts_s(proven.variant, winners.values())).undisputed:
            known = {built.variant.name: built.measured for built in self.variants}
            reported = self._report(proven)
            if not isinstance(reported, str) and is_undisputed(reported.emitted, known):
                return reported, {}, known
        decided, rejected, ratios = self._rejected(proven, winners)
        if rejected or decided is None:
            return None, rejected, ratios
        reported = self._reported(proven, decided, ratios)
        if isinstance(reported, str):
            return None, dict.fromkeys(winners, reported), ratios
        return reported, {}, ratios

    def _rejected(
        self, proven: Proven, winners: Mapping[str, Winner]
    ) -> tuple[ProgramTimings | None, dict[str, str], Mapping[str, Timing]]:
        """Return the figures of the deciding session, why scripts are dropped, and the timings of all variants there.

        Where the whole program is slower with the scripts, the half of them that saves least is dropped: each script
        won alone, and the time of the whole program does not say which script is at fault. All are dropped where the
        untuned program fails, as nothing proves the numbers then.
        """
        try:
            timings, ratios = self._decide(proven, winners)
        except ModelCompileError as error:
            return None, dict.fromkeys(winners, reason(str(error))), {}
        except BaselineError as error:
            why = f"the untuned program failed when this was measured with it: {reason(str(error))}"
            return None, dict.fromkeys(winners, why), {}
        own = ratios.get(self.tuned.variant.name)
        if own is not None and timings.emitted.ratio_low < NO_LOSS * own.ratio:
            text = f"the program was {speedup(timings.emitted)} with the scripts and {speedup(own)} without"
            return timings, dict.fromkeys(_half_of_least_gain(winners), text), ratios
        if plainest_of_fastest(ratios, timings.emitted) is None:
            return timings, {}, ratios
        rival = max(ratios, key=lambda name: ratios[name].ratio_high)
        text = f"{speedup(timings.emitted)} with scripts, {speedup(ratios[rival])} without"
        why = f"it is not shown that the program with scripts is faster than the untuned variant {rival}: {text}"
        return timings, dict.fromkeys(winners, why), ratios

    def _not_run(self, proven: Proven, winners: Mapping[str, Winner]) -> list[str]:
        """Return the task keys of the scripts whose dispatches the program does not call with the inputs of checks."""
        uncertain = {key: winner.task.name for key, winner in winners.items() if winner.task.may_not_run}
        if not uncertain:
            return []
        called = self.sessions.called(proven, self.target, self.variants[0].call_s)
        return [key for key, name in uncertain.items() if name not in called]

    def _decide(self, proven: Proven, winners: Mapping[str, Winner]) -> tuple[ProgramTimings, Mapping[str, Timing]]:
        """Return the timings of a program and of all variants by name, from a session that was not disturbed."""
        return undisturbed(
            lambda: self._session(proven, winners),
            lambda found: is_disturbed(found[0].emitted, found[1]),
            self.ledger.affords,
        )

    def _session(self, proven: Proven, winners: Mapping[str, Winner]) -> tuple[ProgramTimings, Mapping[str, Timing]]:
        """Measure a program beside the variants that may be as fast, in a fresh process.

        All ratios are relative to the default's median, also where another variant is the reference: an interval then
        tells how far a program is from the reference. A default that is clearly slower is not measured again; how far
        the reference is from it is known from the beginning.
        """
        tuned_s, default = with_scripts_s(proven.variant, winners.values()), self.variants[0]
        rivals = Rivals.of(self.variants, tuned_s)
        try:
            return self._compared(proven, rivals, tuned_s)
        except BaselineError:
            if rivals.reference is default:
                raise
            return self._compared(proven, rivals.against(default), tuned_s)

    def _compared(self, proven: Proven, rivals: Rivals, tuned_s: float) -> tuple[ProgramTimings, Mapping[str, Timing]]:
        """Measure a program that is expected to take ``tuned_s`` seconds per call beside its rivals."""
        default, reference = self.variants[0], rivals.reference
        most = self.ledger.most_rivals(reference.call_s, [each.call_s for each in rivals.others])
        rivals = rivals.at_most(most)
        calls_s = [reference.call_s, tuned_s, *(each.call_s for each in rivals.others)]
        options = self.options.capped(self.ledger.deciding_s(calls_s, default.call_s))
        found = self.sessions.program(options, default, reference, rivals.others, proven)
        again = found.others.get(default.variant.name)
        if again is None and default in rivals.others:
            raise BaselineError(f"the default program fails beside the variant {reference.variant.name}")
        found = found.scaled(reference.measured.ratio if again is None else 1 / again.ratio)
        known = {built.variant.name: built.measured for built in rivals.slow}
        timings = {reference.variant.name: found.untuned, **found.others, **known}
        names = [built.variant.name for built in self.variants]
        beside = replace(found, untuned=found.others.get(default.variant.name, found.untuned))
        return beside, {name: timings[name] for name in names if name in timings}

    def _without_scripts(self, reasons: Mapping[str, str], known: Mapping[str, Timing]) -> Emission:
        """Return the emission of the untuned variant that is worth its flags; the default when none is.

        Args:
            reasons: Why no task has a script, by key.
            known: Timings of all variants in a session that decided; empty when there was none.
        """
        default = self.variants[0]
        ratios, lost = (known, "") if known else self._variants()
        name = plainest_of_fastest(ratios, None)
        chosen = next(built for built in self.variants if built.variant.name == name)
        if chosen is not default:
            own, verdict = ratios[chosen.variant.name], self.sessions.verdict
            if (proven := self._proven(chosen, {})) is not None:
                figures = ProgramTimings(ratios[default.variant.name], own, {}, verdict, lost=lost)
                reported = self._report(proven, figures)
                if not isinstance(reported, str):
                    return self._emission(reported, ratios, proven, {}, reasons)
                self.left_out[chosen.variant.name] = reported
        if (proven := self._proven(default, {})) is None:
            raise self.failed[default.variant.name]
        return self._emission(self._untuned(proven), ratios, proven, {}, reasons)

    def _untuned(self, proven: Proven) -> ProgramTimings:
        """Return the figures of the default without scripts: those of the beginning where no time is left.

        A default that is wrong by the user's reference is timed, and said to be wrong.
        """
        default = self.variants[0]
        if default.model.untuned_wrong:
            return ProgramTimings(default.measured, as_untuned(default.measured), {}, Verdict.WRONG)
        known = ProgramTimings(default.measured, as_untuned(default.measured), {}, self.sessions.verdict)
        if not self.ledger.affords(self.ledger.session_s(default.call_s, [default.call_s])):
            return known
        try:
            return self._measure_again(proven)
        except (*OF_UNTUNED, ModelCompileError) as error:
            return replace(known, lost=_lost(error))

    def _variants(self) -> tuple[Mapping[str, Timing], str]:
        """Return the timings of all variants by name, in a session that decides between them.

        Where the default fails in the session, those of the beginning are returned, and how it failed.
        """
        known = {built.variant.name: built.measured for built in self.variants}
        if len(known) == 1:
            return known, ""
        try:
            return undisturbed(self._timed_variants, lambda _: False, self.ledger.affords), ""
        except OF_UNTUNED as error:
            return known, _lost(error)

    def _timed_variants(self) -> Mapping[str, Timing]:
        default, *others = self.variants
        calls_s = [each.call_s for each in self.variants]
        options = self.options.capped(self.ledger.deciding_s(calls_s, calls_s[0]))
        untuned, timings = self.sessions.variants(options, default, others)
        return {default.variant.name: as_untuned(untuned), **timings}

    def _reported(self, proven: Proven, decided: ProgramTimings, ratios: Mapping[str, Timing]) -> ProgramTimings | str:
        """Return the figures to report for a program that a session has decided on, or why it is not emitted.

        They are those of another session. Where no time is left for that, they are of the session that decided, if this
        had the default, too, and say so.
        """
        default = self.variants[0]
        least_s = self.ledger.session_s(default.call_s, [decided.emitted.median_s], 0.0)
        beside = ratios[default.variant.name]
        if decided.untuned != beside or self.ledger.affords(least_s):
            return self._report(proven, decided)
        emitted = decided.emitted.over(beside)
        return replace(decided, untuned=as_untuned(beside), emitted=emitted, of_deciding_session=True)

    def _report(self, proven: Proven, known: ProgramTimings | None = None) -> ProgramTimings | str:
        """Return the figures to report for a program, or why it is not emitted after a second measurement.

        Args:
            known: Its figures in the session that decided, which are reported where the untuned program fails.
        """
        try:
            reported = self._measure_again(proven)
        except ModelCompileError as error:
            return reason(str(error))
        except OF_UNTUNED as error:
            return _lost(error) if known is None else replace(known, lost=_lost(error))
        if loses(reported.emitted):
            return f"the program was {speedup(reported.emitted)} when measured again"
        return reported

    def _measure_again(self, proven: Proven) -> ProgramTimings:
        """Measure what loading a program takes and, in another process, the program against plain ``iree-compile``."""
        default, loading = self.variants[0], self._loading(proven)

        def session() -> ProgramTimings:
            options = self.options.lasting(self.ledger.reporting_s(default.call_s))
            return self.sessions.program(options, default, default, (), proven)

        found = undisturbed(
            session,
            lambda found: is_disturbed(found.emitted, {default.variant.name: as_untuned(found.untuned)}),
            self.ledger.affords,
        )
        return replace(found, loading=loading)

    def _loading(self, proven: Proven) -> Loading | None:
        """Return what loading a program takes; None where nothing is run, or there is no time beside a session."""
        default, calls_s = self.variants[0], [self.variants[0].call_s] * 2
        least_s = self.ledger.loading_s(calls_s) + self.ledger.session_s(calls_s[0], calls_s[1:], 0.0)
        return self.sessions.loading(self.options, default, proven) if self.ledger.affords(least_s) else None

    def _emission(
        self,
        reported: ProgramTimings,
        ratios: Mapping[str, Timing],
        proven: Proven,
        winners: Mapping[str, Winner],
        reasons: Mapping[str, str],
    ) -> Emission:
        program = self._result(reported, ratios, proven)
        return Emission(program, winners, reasons, proven.files, reported.lost, self.left_out)

    def _result(self, reported: ProgramTimings, ratios: Mapping[str, Timing], proven: Proven) -> ProgramResult:
        medians, variant = {name: timing.ratio for name, timing in ratios.items()}, proven.variant.variant
        return ProgramResult(
            reported.untuned,
            reported.emitted,
            medians,
            variant.name,
            self.sessions.device(self.options, variant.plan.threads(self.options.threads)),
            reported.verdict,
            reported.constant_outputs,
            proven.program.values if proven.program else {},
            reported.inside,
            loading=reported.loading,
            of_deciding_session=reported.of_deciding_session,
        )


def _lost(error: Exception) -> str:
    """Return what an error of the untuned program in the last session costs."""
    return (
        "the times of the whole program are of an earlier session: in the last one the untuned program failed "
        f"({reason(str(error))}); the same command measures them again"
    )


def _half_of_least_gain(winners: Mapping[str, Winner]) -> list[str]:
    """Return the task keys of the half of the scripts that saves the least time per run of the model, at least one."""
    saved = {key: w.timing.median_s * (w.timing.ratio - 1) * w.task.weight for key, w in winners.items()}
    return sorted(saved, key=saved.__getitem__)[: (len(saved) + 1) // 2]
