import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlir_sched.errors import IllegalTraceError
from mlir_sched.sampling import Categorical, PerfectTile, Permutation, PowerOfTwo, Value
from mlir_sched.trace import Decision, OnIllegal, Recorder, Trace

seeds = st.integers(0, 2**32 - 1)


def program(recorder: Recorder, extent: int = 64) -> Trace:
    """A schedule with control flow: the packed form has one variable more."""
    recorder.decide("tile", PerfectTile(extent, 2))
    recorder.decide("order", Permutation(("m", "n", "k")))
    if recorder.decide("pack", Categorical(("no", "yes"))) == "yes":
        recorder.decide("width", PowerOfTwo(4, 32))
    return recorder.finish("example")


def draw(seed: int) -> Trace:
    return program(Recorder(rng=np.random.default_rng(seed)))


@given(seeds)
def test_json_text_gives_the_trace_back(seed: int) -> None:
    trace = draw(seed)
    again = Trace.from_json(json.loads(json.dumps(trace.to_json())))
    assert again == trace
    assert again.key == trace.key


@given(seeds)
def test_all_values_given_make_the_same_trace(seed: int) -> None:
    trace = draw(seed)
    assert program(Recorder(trace.values)) == trace
    assert program(Recorder(trace.values, on_illegal=OnIllegal.REJECT)) == trace


@given(seeds, seeds)
def test_keys_are_equal_exactly_when_the_choices_are(first: int, second: int) -> None:
    assert (draw(first).key == draw(second).key) == (draw(first).values == draw(second).values)


def test_keys_tell_sketches_and_types_apart() -> None:
    number = (Decision("x", Categorical((1, 2)), 1),)
    word = (Decision("x", Categorical(("1", "2")), "1"),)
    assert len({Trace("a", number).key, Trace("b", number).key, Trace("a", word).key}) == 3


def test_the_key_does_not_change_between_versions() -> None:
    trace = Trace("a", (Decision("tile", PerfectTile(8, 2), (4, 2)), Decision("word", Categorical(("x",)), "x")))
    assert trace.key == "4f5cb50786434389"


@given(seeds)
def test_with_value_changes_one_decision_of_a_copy(seed: int) -> None:
    trace = draw(seed)
    before = trace.to_json()
    changed = trace.with_value("tile", (8, 8))
    assert changed.values == trace.values | {"tile": (8, 8)}
    assert trace.to_json() == before


def test_with_value_refuses_unknown_names_and_values() -> None:
    with pytest.raises(KeyError):
        draw(0).with_value("colour", 1)
    with pytest.raises(IllegalTraceError, match="tile"):
        draw(0).with_value("tile", (64, 3))


def test_a_value_of_another_shape_is_repaired_to_the_nearest() -> None:
    trace = program(Recorder({"tile": (64, 16), "order": ("m", "n", "k"), "pack": "no"}), extent=48)
    assert trace.values["tile"] == (48, 16)


def test_in_place_of_a_value_that_compares_with_nothing_another_is_drawn() -> None:
    values: dict[str, Value] = {"tile": (8, 4, 2), "order": ("m", "n", "k"), "pack": "maybe"}
    drawn = [program(Recorder(values, np.random.default_rng(seed))).values for seed in range(20)]
    assert {each["pack"] for each in drawn} == {"no", "yes"}
    assert all(each["order"] == values["order"] for each in drawn)
    assert len({each["tile"] for each in drawn}) > 2
    for recorder in (Recorder(values), Recorder(values, likeliest=True)):
        with pytest.raises(IllegalTraceError, match=r"tile = \(8, 4, 2\) is not in the support"):
            program(recorder)


def test_an_equal_value_is_kept_or_becomes_the_one_that_is_drawn() -> None:
    order = Permutation(("m", "n", "k"), still=("n",))
    given: dict[str, Value] = {"order": ("k", "n", "m")}
    assert Recorder(given, on_illegal=OnIllegal.REJECT).decide("order", order) == ("k", "n", "m")
    assert Recorder(given).decide("order", order) == ("n", "k", "m")


def test_rejecting_refuses_what_repairing_repairs() -> None:
    values: dict[str, Value] = {"tile": (64, 16), "order": ("m", "n", "k"), "pack": "no"}
    with pytest.raises(IllegalTraceError, match="tile"):
        program(Recorder(values, on_illegal=OnIllegal.REJECT), extent=48)


def test_a_missing_value_is_drawn_or_refused() -> None:
    values: dict[str, Value] = {"tile": (8, 8), "order": ("m", "n", "k"), "pack": "yes"}
    assert program(Recorder(values, np.random.default_rng(0))).values["width"] in (4, 8, 16, 32)
    with pytest.raises(IllegalTraceError, match="width"):
        program(Recorder(values))


def test_a_value_that_is_never_asked_for_is_refused_only_when_rejecting() -> None:
    values: dict[str, Value] = {"tile": (8, 8), "order": ("m", "n", "k"), "pack": "no", "width": 8}
    assert "width" not in program(Recorder(values)).values
    with pytest.raises(IllegalTraceError, match="width"):
        program(Recorder(values, on_illegal=OnIllegal.REJECT))


def test_a_name_cannot_be_used_twice() -> None:
    recorder = Recorder(rng=np.random.default_rng(0))
    recorder.decide("x", PowerOfTwo(1, 8))
    with pytest.raises(ValueError, match="twice"):
        recorder.decide("x", PowerOfTwo(1, 8))
    decision = Decision("x", PowerOfTwo(1, 8), 4)
    with pytest.raises(ValueError, match="unique"):
        Trace("a", (decision, decision))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"sketch": "a"},
        {"sketch": "a", "decisions": [{"name": "x"}]},
        {"sketch": "a", "decisions": [{"name": "x", "value": 1, "distribution": {"kind": "unheard_of"}}]},
        {"sketch": "a", "decisions": 5},
        {"sketch": "a", "decisions": ["x"]},
        {"sketch": "a", "decisions": [{"name": "x", "value": 1, "distribution": 7}]},
        [],
    ],
)
def test_what_is_not_a_trace_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Trace.from_json(data)


def test_a_value_outside_its_support_is_refused() -> None:
    data = Trace("a", (Decision("x", PowerOfTwo(1, 8), 4),)).to_json()
    data["decisions"][0]["value"] = 3
    with pytest.raises(IllegalTraceError, match="x = 3"):
        Trace.from_json(data)


@pytest.mark.parametrize("value", [4.0, True, [4], {"a": 1}, None])
def test_a_value_of_the_wrong_type_is_refused(value: object) -> None:
    data = Trace("a", (Decision("x", PowerOfTwo(1, 8), 4),)).to_json()
    data["decisions"][0]["value"] = value
    with pytest.raises((IllegalTraceError, ValueError), match=r".+"):
        Trace.from_json(data)


def test_values_that_are_not_given_may_be_the_likeliest() -> None:
    trace = program(Recorder({"pack": "yes", "tile": (5, 5)}, likeliest=True))
    assert trace.values == {"tile": (4, 4), "order": ("m", "n", "k"), "pack": "yes", "width": 4}
