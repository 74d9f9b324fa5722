"""What a replay finds, as data: per sequence of the library, and for the whole program."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mlir_sched.outcome import Timing, Verdict, of_all
from mlir_sched.replaying.script_state import ScriptState
from mlir_sched.tuned_folder.result import Loading

NOT_IN_EDITED = "the program with the edited decisions has no such dispatch"
"""Why a sequence need not hold; the library keeps it, for another edit may need it."""


@dataclass(frozen=True)
class ReplayedSequence:
    """One sequence of the library, as replayed.

    Attributes:
        dispatch: The dispatch it was tuned for.
        state: How its script relates to its decisions.
        note: What was changed by hand, or why it is refused.
        then: Speed-up against the untuned dispatch when it was tuned, as text.
        applied: Number of the model's dispatches that it is applied to; None when that was not counted.
        code: Digest of the code that it makes of its dispatch alone; empty when it was not compiled.
        timing: Its time now, with the ratio to the untuned dispatch; None when it fails or was not tried.
        verdict: What the numeric checks say of it now.
        problems: Why it does not hold; empty when it does.
    """

    symbol: str
    dispatch: str
    state: ScriptState
    note: str
    then: str
    applied: int | None = None
    code: str = ""
    timing: Timing | None = None
    verdict: Verdict = Verdict.NOT_CHECKED
    problems: tuple[str, ...] = ()

    @property
    def is_needed(self) -> bool:
        """Whether the program, with its decisions as they are, should use it."""
        return self.note != NOT_IN_EDITED


@dataclass(frozen=True)
class ReplayResult:
    """The result of ``replay``.

    Attributes:
        model: Path of the model.
        tuned: The folder.
        sequences: One entry per sequence of the library.
        untuned: Timing of plain ``iree-compile`` now; None when the program was not measured.
        program: Timing of the program now, with its ratio.
        then: The program's speed-up when it was tuned, None when unknown.
        problems: What does not hold for the program or the folder as a whole.
        notes: What else a reader should know.
        state: How library and flags relate to the decisions about the program; None when the library states none.
        note: What was changed in these decisions by hand, or why they are refused.
        verdict: What the numeric checks say of the program now.
        values: Digests of the inputs that the user gave and of the reference for them, by function.
        inside: Dispatches whose results were compared, once per result, as those of the program say nothing.
        loading: What loading the untuned program and the program takes now; None where that is not known.
    """

    model: str
    tuned: str
    sequences: tuple[ReplayedSequence, ...]
    untuned: Timing | None
    program: Timing | None
    then: float | None
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    state: ScriptState | None = None
    note: str = ""
    verdict: Verdict = Verdict.NOT_CHECKED
    values: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    inside: tuple[str, ...] = ()
    loading: Loading | None = None

    @property
    def all_problems(self) -> tuple[str, ...]:
        """Every reason why the folder does not hold; empty when it does."""
        own = (f"@{s.symbol}: {problem}" for s in self.sequences for problem in s.problems)
        return (*own, *self.problems)

    @property
    def holds(self) -> bool:
        """Whether every script applies, computes the right numbers and still wins, and so does the program."""
        return not self.all_problems

    @property
    def is_right(self) -> bool:
        """Whether every script and the program compute the right numbers, however fast they are."""
        scripts = (sequence.verdict for sequence in self.sequences if sequence.is_needed)
        return of_all([self.verdict, *scripts]) is Verdict.RIGHT

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return {"holds": self.holds, **asdict(self)}
