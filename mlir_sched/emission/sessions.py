"""What whole programs take at the end of a run: in sessions of a runner, or by a model where nothing is run."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir_sched.emission.final_measurement import ProgramTimings, measure_program, measure_variants
from mlir_sched.emission.finalists import Winner
from mlir_sched.outcome import Timing, Verdict, as_untuned
from mlir_sched.program.loading import measure_loading
from mlir_sched.program.proof import Proven
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.whole_program import profile
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.targets.target import Target
from mlir_sched.tuned_folder.result import Loading


class Sessions:
    """What whole programs take, each in a session of a runner in a process of its own.

    Attributes:
        verdict: What is known of the numbers of a program without scripts that has a time.
    """

    verdict: ClassVar[Verdict] = Verdict.RIGHT

    def device(self, options: RunnerOptions, threads: int) -> str:
        """Return IREE's device that programs run on; empty where nothing was run."""
        return options.driver.device(threads)

    def program(
        self,
        options: RunnerOptions,
        default: BuiltVariant,
        reference: BuiltVariant,
        others: Sequence[BuiltVariant],
        proven: Proven,
    ) -> ProgramTimings:
        """Return the times of a program and its rivals relative to another program; see :func:`measure_program`.

        Args:
            default: The default variant, whose functions are compared.
            reference: The variant that all are compared with.

        Raises:
            ProgramFailedError: The program computes other results, or fails.
            EnvironmentFailureError, BaselineError: The machine or the reference fails.
        """
        with Runner(options) as runner:
            programs = {built.variant.name: built.compiled() for built in others}
            return measure_program(runner, default.model, reference.compiled(), programs, proven.compiled())

    def variants(
        self, options: RunnerOptions, default: BuiltVariant, others: Sequence[BuiltVariant]
    ) -> tuple[Timing, Mapping[str, Timing]]:
        """Return the times of the default and, by name, of other variants without scripts."""
        with Runner(options) as runner:
            programs = {built.variant.name: built.compiled() for built in others}
            return measure_variants(runner, default.model, default.compiled(), programs)

    def loading(self, options: RunnerOptions, default: BuiltVariant, proven: Proven) -> Loading | None:
        """Return what loading the default and a program takes; see :func:`measure_loading`."""
        return measure_loading(options, default.model, default.compiled(), proven.compiled())

    def called(self, proven: Proven, target: Target, call_s: float) -> Collection[str]:
        """Return the dispatches that a run of a program calls, by its profile; none where IREE records no profile.

        Args:
            call_s: About how long a call of the program takes, seconds.
        """
        found = profile(proven.variant.model, proven.vmfb, proven.variant.on(target), call_s)
        return () if found is None else found.calls


@dataclass(frozen=True)
class EstimatedSessions(Sessions):
    """What a model says in place of sessions; nothing is run, and no numbers are checked.

    Attributes:
        winners: The scripts that programs may have, by task key.
    """

    winners: Mapping[str, Winner]
    verdict: ClassVar[Verdict] = Verdict.NOT_CHECKED

    def device(self, options: RunnerOptions, threads: int) -> str:
        """Return no device."""
        del options, threads
        return ""

    def program(
        self,
        options: RunnerOptions,
        default: BuiltVariant,
        reference: BuiltVariant,
        others: Sequence[BuiltVariant],
        proven: Proven,
    ) -> ProgramTimings:
        """Return the estimates, that of the program from those of its variant and its scripts."""
        del options, default
        reference_s = reference.call_s
        program_s = with_scripts_s(proven.variant, [self.winners[key] for key in proven.sequences])
        rivals = {built.variant.name: Timing.estimated(built.call_s, reference_s) for built in others}
        emitted = Timing.estimated(program_s, reference_s)
        return ProgramTimings(as_untuned(reference.measured), emitted, rivals, self.verdict)

    def variants(
        self, options: RunnerOptions, default: BuiltVariant, others: Sequence[BuiltVariant]
    ) -> tuple[Timing, Mapping[str, Timing]]:
        """Return the estimates."""
        del options
        return default.measured, {built.variant.name: built.measured for built in others}

    def loading(self, options: RunnerOptions, default: BuiltVariant, proven: Proven) -> None:
        """Return nothing: no program is loaded."""
        del options, default, proven

    def called(self, proven: Proven, target: Target, call_s: float) -> Collection[str]:
        """Return all dispatches: which of them a run calls is not known, and no check of theirs is missing."""
        del target, call_s
        return [task.name for task in proven.variant.model.tasks]


def with_scripts_s(variant: BuiltVariant, winners: Iterable[Winner]) -> float:
    """Return the seconds that a variant with scripts takes at most: its scripts and its other, untuned dispatches."""
    times = [(w.task.weight * w.untuned.median_s, w.task.weight * w.timing.median_s) for w in winners]
    rest = variant.call_s - sum(untuned for untuned, _ in times)
    return max(0.0, rest) + sum(tuned for _, tuned in times)
