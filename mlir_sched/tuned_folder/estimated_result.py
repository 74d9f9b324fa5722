"""The result of a run without a device: plain data that the table and ``summary.json`` share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mlir_sched.sampling import Value
from mlir_sched.text import decisions
from mlir_sched.tuned_folder.result import SUMMARY_VERSION, failures_together


@dataclass(frozen=True)
class EstimatedDispatch:
    """One distinct dispatch of the model.

    Attributes:
        name: Its symbol in the model.
        task_key: Key of its task.
        weight: How often one run of the model calls it.
        untuned_s: Estimated seconds of its untuned code; None when there is no estimate.
        tuned_s: Estimated seconds with its script; None when no script is emitted.
        symbol: Name of its sequence in the library; empty when no script is emitted.
        sketch: Name of the sketch of its script; empty when no script is emitted.
        decisions: The decisions of its script by name.
        trials: Candidates tried.
        failures: How many failed, by class.
        note: Why the dispatch has no script; empty when it has one.
    """

    name: str
    task_key: str
    weight: int
    untuned_s: float | None
    tuned_s: float | None = None
    symbol: str = ""
    sketch: str = ""
    decisions: Mapping[str, Value] | None = None
    trials: int = 0
    failures: Mapping[str, int] | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Estimated untuned time / estimated time with the script; None without a script."""
        return None if self.untuned_s is None or self.tuned_s is None else self.untuned_s / self.tuned_s

    @property
    def what_changed(self) -> str:
        """The sketch and the decisions of its script on one line, or why it has none."""
        return self.note or f"{self.sketch}: {decisions(self.decisions or {})}"


@dataclass(frozen=True)
class EstimatedResult:
    """The result of ``tune --check-only``: scripts that are proven applied, and neither run nor timed.

    Attributes:
        model: Path of the model.
        target: The target as the user named it.
        processor: The device that the estimates are for.
        seed: Seed of the search.
        trials: Candidates tried, those known from the store included.
        seconds: Wall-clock seconds of this process.
        interrupted: Whether the user stopped the search early.
        stopped: Why the search ended early because the machine failed; empty when it did not.
        variant: Name of the variant that is emitted.
        untuned_s: Estimated seconds of the program as plain ``iree-compile`` makes it.
        tuned_s: Estimated seconds of the program that is emitted.
        variants: Estimated seconds of every variant without scripts, by name.
        left_out: Why other variants do not compete, by name.
        dispatches: One entry per distinct dispatch, in the model's order.
        output: The folder.
        store: Where the records are.
        versions: Versions of everything that decides the result.
        emission: Name of the emission, which the library states; empty when there is no library.
        flags: Compiler flags of the emitted program, without those that name the library.
        notes: What is to be known of the run, one sentence each.
    """

    model: str
    target: str
    processor: str
    seed: int
    trials: int
    seconds: float
    interrupted: bool
    variant: str
    untuned_s: float
    tuned_s: float
    variants: Mapping[str, float]
    left_out: Mapping[str, str]
    dispatches: tuple[EstimatedDispatch, ...]
    output: str
    store: str
    versions: Mapping[str, str]
    emission: str = ""
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stopped: str = ""

    @property
    def failures(self) -> dict[str, int]:
        """Failed candidates of all dispatches by class."""
        return failures_together(dispatch.failures for dispatch in self.dispatches)

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON data (``summary.json``)."""
        return {"summary_version": SUMMARY_VERSION, "measured": False, **asdict(self)}
