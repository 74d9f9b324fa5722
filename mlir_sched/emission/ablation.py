"""The worth of every decision of a script, computed from the records of the search that found the script.

A candidate in which one decision has another value says what giving up the decision's value costs. Candidates differ in
several decisions as a rule, so that two are of interest: the fastest one with another value, which tells what is lost
where all other decisions may adapt, and the fastest one in which nothing else differs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from mlir_sched.database.record import Record
from mlir_sched.emission.acceptance import MIN_GAIN
from mlir_sched.outcome import Outcome, Timing
from mlir_sched.sampling import Value
from mlir_sched.trace import Decision, Trace
from mlir_sched.tuned_folder.decision_worth import Ablation, Alternative, DecisionWorth, RelativeSpeed, SketchWorth

Changes: TypeAlias = dict[str, Value | None]


def ablation(script: Trace, timing: Timing, records: Iterable[Record], sketches: Sequence[str]) -> Ablation | None:
    """Return what the decisions of an emitted script are worth; None when its own measurement is not among the records.

    The script was chosen because its ratio in the search was the largest, which is too large as a rule; what it is
    compared by comes from a session that took no part in the choice.

    Args:
        records: Records of the script's task, that of the script among them.
    """
    traced = [(record.trace, record.outcome) for record in records if record.trace is not None]
    own = next((outcome for trace, outcome in traced if trace.key == script.key), None)
    if own is None or own.valid is None:
        return None
    own = replace(own, timing=timing)
    others = [(trace.sketch, _changes(script, trace), outcome) for trace, outcome in traced if trace.key != script.key]
    related = [(changes, outcome) for sketch, changes, outcome in others if sketch == script.sketch]
    decisions = [_decision_worth(decision, related, own) for decision in script.decisions]
    elsewhere = [
        _sketch_worth(name, [(changes, outcome) for sketch, changes, outcome in others if sketch == name], own)
        for name in sketches
        if name != script.sketch
    ]
    decisions.sort(key=lambda worth: _dearest_first(worth.best))
    elsewhere.sort(key=lambda worth: worth.best.cost if worth.best else float("inf"))
    return Ablation(timing.ratio, tuple(decisions), tuple(elsewhere))


def _changes(script: Trace, trace: Trace) -> Changes:
    """Return the decisions of a trace with other values than in the script; all of them for another sketch."""
    if trace.sketch != script.sketch:
        return dict(trace.values)
    names = dict.fromkeys([*script.values, *trace.values])
    return {name: trace.values.get(name) for name in names if trace.values.get(name) != script.values.get(name)}


def _decision_worth(decision: Decision, related: Sequence[tuple[Changes, Outcome]], own: Outcome) -> DecisionWorth:
    """Return what is known of the other values of a decision.

    Candidates that do not have the decision have no other value of it.
    """
    other = [(changes, outcome) for changes, outcome in related if changes.get(decision.name) is not None]
    valid = _alternatives(other, own)
    return DecisionWorth(
        decision.name,
        decision.value,
        fixed=len(decision.distribution.support()) == 1,
        measured=len(valid),
        failed=sum(outcome.failure is not None for _, outcome in other),
        best=_fastest(valid),
        alone=_fastest(alternative for alternative in valid if len(alternative.changes) == 1),
    )


def _sketch_worth(name: str, candidates: Sequence[tuple[Changes, Outcome]], own: Outcome) -> SketchWorth:
    valid = _alternatives(candidates, own)
    failed = sum(outcome.failure is not None for _, outcome in candidates)
    return SketchWorth(name, len(valid), failed, _fastest(valid))


def _alternatives(candidates: Sequence[tuple[Changes, Outcome]], own: Outcome) -> list[Alternative]:
    """Return the valid candidates as alternatives to the script with the outcome ``own``."""
    timed = [(changes, outcome, outcome.valid) for changes, outcome in candidates]
    return [
        _alternative(changes, timing, own.valid, same_code=bool(own.binary_hash == outcome.binary_hash != ""))
        for changes, outcome, timing in timed
        if timing is not None and own.valid is not None
    ]


def _alternative(changes: Changes, timing: Timing, own: Timing, *, same_code: bool) -> Alternative:
    """Return a candidate against the script, by the ratios of both to the untuned code.

    The machine's speed drifts between rounds, and each candidate was timed in turns with the untuned code: so the
    ratios are compared, not the seconds.
    """
    if same_code:
        return Alternative(1.0, 1.0, 1.0, RelativeSpeed.SAME_CODE, changes)
    cost, low, high = own.ratio / timing.ratio, own.ratio_low / timing.ratio_high, own.ratio_high / timing.ratio_low
    verdict = (
        RelativeSpeed.AS_FAST if cost < MIN_GAIN else RelativeSpeed.UNCLEAR if low <= 1.0 else RelativeSpeed.SLOWER
    )
    return Alternative(cost, low, high, verdict, changes)


def _fastest(alternatives: Iterable[Alternative]) -> Alternative | None:
    """Return the alternative with the script's own code, else the fastest; of equal ones that with fewest changes."""
    return min(alternatives, key=_rank, default=None)


def _rank(alternative: Alternative) -> tuple[bool, float, int]:
    return alternative.verdict is not RelativeSpeed.SAME_CODE, alternative.cost, len(alternative.changes)


def _dearest_first(best: Alternative | None) -> tuple[int, float]:
    verdicts = list(RelativeSpeed)
    return (len(verdicts), 0.0) if best is None else (verdicts.index(best.verdict), -best.cost)
