"""What the decisions of a script are worth, by made records."""

from __future__ import annotations

import pytest
from stored_records import failed, make_record

from mlir_sched.database.record import Record
from mlir_sched.emission.ablation import ablation
from mlir_sched.errors import FailureClass
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.sampling import Categorical, IntRange, Value
from mlir_sched.trace import Decision, Trace
from mlir_sched.tuned_folder.decision_worth import Ablation, DecisionWorth, RelativeSpeed

CHOICES = {"unroll": IntRange(1, 8), "order": Categorical(("rows", "columns")), "tail": Categorical(("mask",))}


def trace(unroll: int = 4, order: str = "rows", sketch: str = "registers", **others: int) -> Trace:
    values: dict[str, Value] = {"unroll": unroll, "order": order, "tail": "mask"}
    further = (Decision(name, IntRange(0, 9), value) for name, value in others.items())
    return Trace(sketch, (*(Decision(name, CHOICES[name], value) for name, value in values.items()), *further))


SCRIPT = trace()


def measured(of: Trace, ratio: float, *, width: float = 0.01, code: str = "") -> Record:
    """Return the record of a candidate whose interval is a part of its ratio wide on either side."""
    return make_record(of.key, Outcome(ratio_of(ratio, width), None, code or of.key, verdict=Verdict.RIGHT), trace=of)


def ratio_of(ratio: float, width: float = 0.01) -> Timing:
    return Timing(1e-3 / ratio, 1e-3, 1e-3, 9, ratio, ratio * (1 - width), ratio * (1 + width))


def broken(of: Trace) -> Record:
    return make_record(of.key, failed(FailureClass.COMPILE_ERROR), trace=of)


def worths(*others: Record) -> tuple[Ablation, dict[str, DecisionWorth]]:
    """Return what the script, twice as fast as the untuned code, is worth against other candidates."""
    untuned = make_record("untuned", trace=None)
    in_search = measured(SCRIPT, 3.0, code="own")  # the luck that it was chosen for
    found = ablation(SCRIPT, ratio_of(2.0), [untuned, in_search, *others], ("registers", "dot", "cache"))
    assert found is not None
    return found, {worth.name: worth for worth in found.decisions}


def test_a_decision_costs_what_the_fastest_candidate_with_another_value_takes() -> None:
    found, by_name = worths(
        measured(trace(unroll=2), 1.25),
        measured(trace(unroll=1, order="columns"), 1.6),
        measured(trace(unroll=8, order="columns"), 1.0),
    )
    unroll = by_name["unroll"]
    assert found.ratio == 2.0
    assert unroll.best is not None
    assert unroll.alone is not None
    assert (unroll.best.cost, unroll.best.changes) == (1.25, {"unroll": 1, "order": "columns"})
    assert (unroll.alone.cost, unroll.alone.changes) == (1.6, {"unroll": 2})
    assert (unroll.value, unroll.measured, unroll.failed) == (4, 3, 0)
    assert by_name["order"].best == unroll.best
    assert by_name["order"].alone is None, "in none of them is the order the only change"


@pytest.mark.parametrize(
    ("ratio", "width", "verdict"),
    [
        (1.5, 0.05, RelativeSpeed.SLOWER),
        (1.5, 0.4, RelativeSpeed.UNCLEAR),
        (1.97, 0.0, RelativeSpeed.AS_FAST),
        (2.4, 0.0, RelativeSpeed.AS_FAST),
    ],
)
def test_a_value_is_slower_where_the_intervals_say_so(ratio: float, width: float, verdict: RelativeSpeed) -> None:
    _, by_name = worths(measured(trace(unroll=2), ratio, width=width))
    best = by_name["unroll"].best
    assert best is not None
    assert best.verdict is verdict
    assert best.cost == pytest.approx(2.0 / ratio)
    assert best.cost_low == pytest.approx(1.98 / (ratio * (1 + width)))
    assert best.cost_high == pytest.approx(2.02 / (ratio * (1 - width)))


def test_equal_code_costs_nothing_even_where_another_candidate_was_faster_by_luck() -> None:
    _, by_name = worths(measured(trace(unroll=2), 2.1), measured(trace(unroll=1), 2.0, code="own"))
    best = by_name["unroll"].best
    assert best is not None
    assert (best.changes, best.verdict, best.cost) == ({"unroll": 1}, RelativeSpeed.SAME_CODE, 1.0)


def test_decisions_are_ordered_by_what_they_are_worth_and_unknown_ones_come_last() -> None:
    dear, cheap = measured(trace(unroll=2), 0.5), measured(trace(order="columns"), 1.99)
    found, by_name = worths(dear, cheap, broken(trace(unroll=3)))
    assert [worth.name for worth in found.decisions] == ["unroll", "order", "tail"]
    assert by_name["unroll"].failed == 1
    assert (by_name["tail"].best, by_name["tail"].fixed) == (None, True)
    assert not by_name["unroll"].fixed
    found, _ = worths(measured(trace(unroll=2), 1.9, width=0.1), measured(trace(order="columns"), 1.94, width=0.0))
    assert [worth.name for worth in found.decisions] == ["order", "unroll", "tail"], "what is shown comes first"


def test_a_decision_that_a_candidate_does_not_have_has_no_other_value_there_but_is_a_change() -> None:
    _, by_name = worths(measured(trace(unroll=2, peel=3), 1.0))
    best = by_name["unroll"].best
    assert best is not None
    assert best.changes == {"unroll": 2, "peel": 3}
    assert by_name["unroll"].alone is None
    without = Trace("registers", tuple(d for d in trace().decisions if d.name != "order"))
    _, by_name = worths(measured(without, 1.0))
    assert by_name["order"].best is None


def test_other_sketches_have_their_fastest_candidate_and_none_counts_for_a_decision() -> None:
    fast, slow = trace(unroll=7, sketch="cache"), trace(unroll=1, sketch="cache")
    found, by_name = worths(measured(slow, 1.0), measured(fast, 1.6), broken(trace(sketch="dot")))
    assert by_name["unroll"].best is None
    cache, dot = found.sketches
    assert (cache.name, cache.measured, cache.failed) == ("cache", 2, 0)
    assert cache.best is not None
    assert (cache.best.cost, cache.best.changes) == (1.25, fast.values)
    assert (dot.name, dot.measured, dot.failed, dot.best) == ("dot", 0, 1, None)


def test_a_script_without_a_measurement_of_its_own_has_none() -> None:
    assert ablation(SCRIPT, ratio_of(2.0), [measured(trace(unroll=2), 1.0), broken(SCRIPT)], ("registers",)) is None
