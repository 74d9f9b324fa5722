"""The result of a tuning run: plain data that the table, ``summary.json`` and the Python API share."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mlir_sched.outcome import LoadCost, Timing, Verdict
from mlir_sched.sampling import Value
from mlir_sched.text import decisions, mebibytes, seconds
from mlir_sched.tuned_folder.decision_worth import Ablation
from mlir_sched.tuned_folder.transferred import OneShotResult, TransferResult

SUMMARY_VERSION = 1
"""The form of ``summary.json``; a change that readers have to know of raises it."""
FAR = 1.2
"""Multiple of what loading the untuned program takes from which the user is told at the end of a run."""
FAR_S, FAR_BYTES = 0.5, 2**24
"""Least seconds and bytes beyond it that the user is told of: a wait that is felt, and far more than what two loads of
one program differ by."""


def failures_together(failures: Iterable[Mapping[str, int] | None]) -> dict[str, int]:
    """Return failed candidates by class, of several dispatches together; None stands for no candidates."""
    together: Counter[str] = Counter()
    for each in failures:
        together.update(each or {})
    return dict(together)


def reference_name(*, repaired: bool) -> str:
    """Return what the untuned program is called, which may have been repaired."""
    return "the repaired program without scripts" if repaired else "plain iree-compile"


@dataclass(frozen=True)
class DispatchResult:
    """One distinct dispatch of the model.

    Attributes:
        name: Its symbol in the model.
        description: Its ops with their extents.
        task_key: Key of its task.
        weight: How often one run of the model calls it.
        in_program_s: Seconds of one call inside of the untuned program, by its profile; None when it is not known.
        share: Part of the untuned program's time that its calls take, 0 to 1; None when it is not known.
        untuned: Its untuned timing; None when it was not measured.
        tuned: Timing of its final script, with the ratio to the untuned code; None when no script is used.
        symbol: Name of its sequence in the library, empty when no script is used.
        sketch: Name of the sketch of its script, empty when no script is used.
        decisions: The decisions of its script by name; None when no script is used.
        trials: Candidates tried.
        failures: How many failed, by class; None when the dispatch was not searched.
        note: Why the dispatch stays untuned; empty when it is tuned.
        ablation: What the decisions of its script are worth; None when no script is used.
    """

    name: str
    description: str
    task_key: str
    weight: int
    untuned: Timing | None
    tuned: Timing | None = None
    symbol: str = ""
    sketch: str = ""
    decisions: Mapping[str, Value] | None = None
    trials: int = 0
    failures: Mapping[str, int] | None = None
    note: str = ""
    in_program_s: float | None = None
    share: float | None = None
    ablation: Ablation | None = None

    @property
    def speedup(self) -> float:
        """Untuned time / tuned time; 1 when the dispatch stays untuned."""
        return self.tuned.ratio if self.tuned is not None else 1.0

    @property
    def what_changed(self) -> str:
        """The sketch and the decisions of its script on one line, or why it stays untuned."""
        return self.note if self.tuned is None else f"{self.sketch}: {decisions(self.decisions or {})}"

    @property
    def seconds_per_run(self) -> float:
        """Seconds that its calls take per run of the model as it is emitted: its time alone, else that by the profile.

        0 when neither is known.
        """
        alone = self.tuned or self.untuned
        return self.weight * (alone.median_s if alone is not None else self.in_program_s or 0.0)


@dataclass(frozen=True)
class Repair:
    """What was repaired of a program that has a form that IREE is known to compile wrong.

    Attributes:
        forms: Names of the forms that the program has.
        wrong: How the results of plain ``iree-compile``'s code differ from those of the repaired program; empty where
            they do not, or nothing was run.
        plain_s: Seconds that all dispatches of plain ``iree-compile``'s code take per call, by its profile; None where
            IREE records none, or nothing was run.
    """

    forms: tuple[str, ...]
    wrong: str = ""
    plain_s: float | None = None


@dataclass(frozen=True)
class Loading:
    """What loading the program takes: the weights are read, and what depends on them alone is computed.

    Attributes:
        untuned: Of plain ``iree-compile``; of the repaired program where that is wrong (``repair``).
        tuned: Of the emitted program.
    """

    untuned: LoadCost
    tuned: LoadCost

    @property
    def costs_more(self) -> bool:
        """Whether loading the emitted program takes far longer, or far more memory, than the untuned one."""
        return (
            _is_far_above(self.tuned.seconds, self.untuned.seconds, FAR_S)
            or _is_far_above(self.tuned.peak_bytes, self.untuned.peak_bytes, FAR_BYTES)
            or _is_far_above(self.tuned.resident_bytes, self.untuned.resident_bytes, FAR_BYTES)
        )

    @property
    def words(self) -> str:
        """What loading takes, in words."""
        tuned, untuned = self.tuned, self.untuned
        return (
            f"loads in {seconds(tuned.seconds)} (untuned {seconds(untuned.seconds)}), "
            f"with {mebibytes(tuned.peak_bytes)} of memory at most (untuned {mebibytes(untuned.peak_bytes)}), "
            f"and needs {mebibytes(tuned.resident_bytes)} then (untuned {mebibytes(untuned.resident_bytes)})"
        )


@dataclass(frozen=True)
class Weights:
    """Bytes of constants, in files or in the program, that calls read: what weights need once they are computed.

    Attributes:
        untuned_bytes: Of plain ``iree-compile``.
        tuned_bytes: Of the emitted program; its files of encoded weights are about as large.
    """

    untuned_bytes: int
    tuned_bytes: int

    @property
    def cost_more(self) -> bool:
        """Whether the emitted program needs far more memory for its weights than the untuned one."""
        return _is_far_above(self.tuned_bytes, self.untuned_bytes, FAR_BYTES)

    @property
    def words(self) -> str:
        """What calls read, in words."""
        return f"its calls read {mebibytes(self.tuned_bytes)} of weights (untuned {mebibytes(self.untuned_bytes)})"


def _is_far_above(tuned: float, untuned: float, least: float) -> bool:
    return tuned - untuned > max(least, (FAR - 1) * untuned)


@dataclass(frozen=True)
class ProgramResult:
    """The whole program, compiled as a user compiles it.

    Attributes:
        untuned: Timing of plain ``iree-compile``; of the repaired program where that is wrong (``repair``).
        tuned: Timing of the emitted program, with the ratio to ``untuned``, in a session that decided nothing, unless
            ``of_deciding_session``.
        variants: Ratio of every untuned variant to plain ``iree-compile`` in the session that decided what is emitted,
            by name; a variant that is wrong or fails is missing.
        variant: Name of the variant that was emitted.
        device: IREE's device that it was timed on and is to run on (``iree-run-module --device``): ``local-sync`` where
            the calling thread is faster than several threads; empty where nothing was run.
        verdict: What the numeric checks against the untuned program say of the emitted one.
        constant_outputs: One sentence for each output that is the same in every check, so that its check says little.
        decisions: The decisions about the program by name, which the library states, too, if there is one.
        inside: Dispatches whose results were compared, once per result, as those of the program say nothing; empty
            where the program's own results were compared, or where it is the untuned program.
        repair: What was repaired of the program before anything else; None for nothing.
        loading: What loading the untuned and the emitted program takes; None where programs do not run on the CPU, no
            time was left, or a process was lost.
        weights: Bytes of weights that calls of the untuned and the emitted program read.
        of_deciding_session: Whether the times are of the session that decided what is emitted, as no time was left for
            another one: the ratio may be a little too good.
    """

    untuned: Timing
    tuned: Timing
    variants: Mapping[str, float]
    variant: str
    device: str
    verdict: Verdict
    constant_outputs: tuple[str, ...] = ()
    decisions: Mapping[str, Value] = field(default_factory=dict)
    inside: tuple[str, ...] = ()
    repair: Repair | None = None
    loading: Loading | None = None
    weights: Weights | None = None
    of_deciding_session: bool = False

    @property
    def reference(self) -> str:
        """What the untuned program is called."""
        return reference_name(repaired=self.repair is not None)

    @property
    def gained(self) -> bool:
        """Whether the emitted program is faster than the untuned one, beyond the noise."""
        return self.tuned.ratio_low > 1.0


@dataclass(frozen=True)
class CurvePoint:
    """The estimated time of a program at one moment of a run.

    Attributes:
        run_s: Seconds of the run until then, those of earlier processes included.
        trials: Candidates tried for the program until then.
        program_s: Seconds that the program is expected to take with the best scripts so far: its dispatches, each
            measured alone, and what the untuned program takes outside of them.
    """

    run_s: float
    trials: int
    program_s: float


@dataclass(frozen=True)
class ProgramCurve:
    """The estimates of one program, in the order of its rounds.

    Attributes:
        variant: Name of the program's variant.
        estimates: One before the first candidate, then one after every round.
    """

    variant: str
    estimates: tuple[CurvePoint, ...]


@dataclass(frozen=True)
class PredictedVariants:
    """Which variants of the program other programs spoke for.

    Attributes:
        programs: How many programs the prediction was made from.
        order: The variants that had a chance, the most promising first.
        ratios: How many times as fast as the default each variant was predicted to be, by name; one that too few
            programs had measured is missing, and counts as as fast.
    """

    programs: int
    order: tuple[str, ...]
    ratios: Mapping[str, float]

    @property
    def words(self) -> str:
        """What was predicted, or what the order comes from where nothing was, in one sentence."""
        first = ", then ".join(self.order) or "none beside the default"
        if not self.ratios:
            return f"{self.programs} known programs say too little to predict a variant; by their rewrites: {first}"
        unknown = ", ".join(name for name in self.order if name not in self.ratios)
        text = f"variants by prediction from {self.programs} known programs: {first}"
        return f"{text} (not predicted: {unknown})" if unknown else text


@dataclass(frozen=True)
class TuneResult:
    """The result of ``tune``.

    Attributes:
        summary_version: The form of this document.
        model: Path of the model.
        target: Backend; with the device where none of this machine was used.
        threads: Threads it was tuned for.
        seed: Seed of the search.
        trials: Candidates tried in this run, known ones included.
        evaluated: Candidates evaluated now, and not found in the store.
        seconds: Wall-clock seconds of this process.
        run_seconds: Wall-clock seconds of all processes that worked on the run: all seconds of this process, and those
            of each earlier process up to the end of its searches, or up to its last round if it was killed.
        phases: Seconds of this process by phase: program variants, untuned dispatches, search, finalists, emission.
        interrupted: Whether the user stopped it early.
        stopped: Why the search ended early because the machine failed; empty when it did not.
        ended_early: Why the search ended with a part of its trials or minutes left, as nothing was left to try or too
            little was expected (``--stop-below``); empty when it did not.
        lost_figures: Why the figures of the whole program are those of an earlier session than the last; empty when
            they are of the last.
        program: End-to-end result.
        left_out: Why program variants were left out, by name: IREE does not compile them, they fail, or time was short.
        notes: Figures of the emitted program that could not be determined exactly, one sentence each.
        dispatches: One entry per distinct dispatch, in the model's order.
        output: The tuned folder; None when nothing was written.
        store: Where the records are.
        parameters: Files with the model's weights, as ``scope=path``.
        tunable_share: Part of the untuned program's time in dispatches that transform modules schedule, 0 to 1; None
            when IREE recorded no profile.
        widest_variant: Name of the tuned variant with the largest part of its time in dispatches that transform modules
            schedule, without scripts.
        widest_share: That part, 0 to 1; None when IREE recorded no profile of any variant that was tuned.
        model_accuracy: Rank accuracy of the cost model on rounds it had not seen (1 = perfect order, 0.5 = chance);
            None when there was no such round.
        versions: Versions of everything that decides the result.
        emission: Name of the emission, which the library states; empty when there is no library.
        curves: Estimated time of every program that was tuned, against the time of the run; first the one that the
            search ended with.
        not_run: Why public functions are neither run nor timed, by name.
        flags: Compiler flags of the emitted program, as it was measured, without those that name the library.
        values: Digests of the inputs that the user gave and of the reference for them, by function.
        processor: What the program was timed on, or is for.
        measured: Whether programs were run. If not, all times are estimates of a model, and no numbers were checked.
        transfer: What the search began from; None where nothing was looked for, or nothing searched.
        one_shot: What candidates were chosen from without a search (0 trials); None for a search.
        predicted: Which variants were predicted to be the fastest; None where nothing was predicted.
    """

    summary_version: int = field(default=SUMMARY_VERSION, init=False)
    model: str
    target: str
    threads: int
    seed: int
    trials: int
    evaluated: int
    seconds: float
    run_seconds: float
    phases: Mapping[str, float]
    interrupted: bool
    program: ProgramResult
    left_out: Mapping[str, str]
    notes: tuple[str, ...]
    dispatches: tuple[DispatchResult, ...]
    output: str | None
    store: str
    parameters: tuple[str, ...]
    tunable_share: float | None
    model_accuracy: float | None
    versions: Mapping[str, str]
    emission: str = ""
    curves: tuple[ProgramCurve, ...] = ()
    not_run: Mapping[str, str] = field(default_factory=dict)
    widest_variant: str = ""
    widest_share: float | None = None
    flags: tuple[str, ...] = ()
    values: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    stopped: str = ""
    ended_early: str = ""
    lost_figures: str = ""
    processor: str = ""
    measured: bool = True
    transfer: TransferResult | None = None
    one_shot: OneShotResult | None = None
    predicted: PredictedVariants | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the machine cost the run neither a part of the search nor the final figures."""
        return not self.stopped and not self.lost_figures

    @property
    def coverage(self) -> str:
        """How much of the program's time can have scripts, in words; empty when IREE recorded no profile."""
        if self.tunable_share is None:
            return ""
        what = "time" if self.measured else "estimated time"
        text = f"{self.tunable_share:.1%} of the untuned program's {what} is in dispatches that can have scripts"
        if self.widest_share is None or self.widest_share <= self.tunable_share:
            return text
        return f"{text}, and {self.widest_share:.1%} as {self.widest_variant}"

    @property
    def speedup(self) -> float:
        """Untuned time / tuned time of the whole program."""
        return self.program.tuned.ratio

    @property
    def not_measured(self) -> str:
        """What is not known of a run without a device, in one sentence; empty where programs were run."""
        if self.measured:
            return ""
        return f"nothing was run. Times are estimates for {self.processor}; numbers were not checked"

    @property
    def failures(self) -> dict[str, int]:
        """Failed candidates of all dispatches by class."""
        return failures_together(dispatch.failures for dispatch in self.dispatches)

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON data (``summary.json``): all fields, and the properties in :data:`SUMMARISED`."""
        data = asdict(self)
        data["program"] |= _summarised(self.program)
        if self.transfer is not None:
            data["transfer"] |= _summarised(self.transfer)
        if self.one_shot is not None:
            data["one_shot"] |= _summarised(self.one_shot)
        if self.predicted is not None:
            data["predicted"] |= _summarised(self.predicted)
        for entry, dispatch in zip(data["dispatches"], self.dispatches, strict=True):
            entry |= _summarised(dispatch)
        return data


SUMMARISED: Mapping[type, tuple[str, ...]] = {
    ProgramResult: ("gained",),
    DispatchResult: ("speedup",),
    TransferResult: ("words",),
    OneShotResult: ("words",),
    PredictedVariants: ("words",),
}
"""The properties that ``summary.json`` has behind the fields of a class."""


def _summarised(
    result: ProgramResult | DispatchResult | TransferResult | OneShotResult | PredictedVariants,
) -> dict[str, Any]:
    return {name: getattr(result, name) for name in SUMMARISED[type(result)]}
