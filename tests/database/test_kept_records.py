"""What a record store keeps."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import event
from stored_records import CONTEXT, TASK, failed, make_record, timed

from mlir_sched.database import RecordStore
from mlir_sched.database.record import Origin, Record, context_key
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.trace import Trace


def test_records_come_back_exactly_and_in_insertion_order(store: RecordStore, path: Path) -> None:
    records = [make_record(f"{index:x}") for index in (7, 3, 5, 1)]
    records += [make_record(str(kind), failed(kind, "line 1\nline 2 ü \t")) for kind in FailureClass]
    records += [make_record("plain", origin=Origin.UNTUNED, trace=None, script="")]
    assert store.add(records) == tuple(records)
    assert store.records(TASK.key, CONTEXT) == tuple(records)
    with RecordStore.open(path, read_only=True) as again:
        assert again.records(TASK.key, CONTEXT) == tuple(records)


@pytest.mark.parametrize("seed", range(20))
def test_json_of_a_record_keeps_every_bit(seed: int) -> None:
    record = make_record(str(seed), timed(seed))
    data = json.loads(json.dumps(record.to_json()))
    assert Trace.from_json(data.pop("trace")) == record.trace
    assert Timing.from_json(data.pop("outcome")["timing"]) == record.outcome.timing
    assert data == {name: getattr(record, name) for name in data}
    assert {*data, "trace", "outcome"} == {field.name for field in fields(Record)}


@pytest.mark.parametrize("value", [5e-324, 1.7976931348623157e308, 0.1 + 0.2, 2.0**-40 / 3])
def test_floats_keep_every_bit_in_store_and_json(store: RecordStore, value: float) -> None:
    record = make_record("x", Outcome(Timing(value, value, value, 1, value, value, value), None, verdict=Verdict.RIGHT))
    store.add([record])
    (stored,) = store.records(TASK.key, CONTEXT)
    assert stored == record
    assert stored.outcome.timing is not None
    data = json.loads(json.dumps(record.to_json()))
    for median_s in (stored.outcome.timing.median_s, data["outcome"]["timing"]["median_s"]):
        assert median_s.hex() == value.hex()


def test_numpy_scalars_are_stored_as_plain_numbers(store: RecordStore) -> None:
    timing = Timing(np.float64(0.5), 0.25, 1.0, np.int64(3), 2.0, 1.0, 3.0)  # type: ignore[arg-type]
    store.add([make_record("x", Outcome(timing, None, verdict=Verdict.RIGHT), round=np.int64(4), seed=np.int32(5))])
    (record,) = store.records(TASK.key, CONTEXT)
    assert (record.round, record.seed, record.outcome.timing) == (4, 5, Timing(0.5, 0.25, 1.0, 3, 2.0, 1.0, 3.0))
    assert type(record.round) is int


def test_a_failure_text_that_no_database_takes_is_kept_with_escapes(store: RecordStore) -> None:
    store.add([make_record("x", failed(FailureClass.COMPILE_CRASH, "a\0b\udcffc"))])
    failure = store.records(TASK.key, CONTEXT)[0].outcome.failure
    assert failure == Failure(FailureClass.COMPILE_CRASH, "a\\x00b\\udcffc")


def test_a_candidate_is_stored_once_per_task_and_context(store: RecordStore) -> None:
    first, second = make_record("a", timed(1)), make_record("a", timed(2))
    elsewhere = replace(second, context_key=context_key(threads=2))
    assert store.add([first, second]) == (first,)
    assert store.add([second, elsewhere]) == (elsewhere,)
    assert store.records(TASK.key, CONTEXT) == (first,)
    assert store.find(TASK.key, CONTEXT, "a") == first
    assert store.find(TASK.key, CONTEXT, "b") is None


def test_what_answers_for_a_candidate_is_lasting_or_new_and_stays_the_same(store: RecordStore) -> None:
    passing, other = failed(FailureClass.RUN_TIMEOUT), failed(FailureClass.COMPILE_CRASH)
    first = store.settle(make_record("a", passing))
    assert store.settle(make_record("a", timed(1))) == first
    since = store.last_record()
    assert store.find(TASK.key, CONTEXT, "a", since=since) is None
    second = store.settle(make_record("a", other), since=since)
    third = store.settle(make_record("a", timed(2)), since=store.last_record())
    assert [(r.attempt, r.outcome) for r in (first, second, third)] == [(0, passing), (1, other), (2, timed(2))]
    assert store.settle(make_record("a", timed(3)), since=store.last_record()) == third
    assert [store.find(TASK.key, CONTEXT, "a", since=n) for n in (0, since, since + 1)] == [first, second, third]
    assert store.records(TASK.key, CONTEXT) == (first, second, third)
    assert store.records(TASK.key, CONTEXT, until=since) == (first,)
    with pytest.raises(ValueError, match="has no task 'unknown'"):
        store.settle(make_record("a", task_key="unknown"))


def test_of_processes_that_settle_one_candidate_at_once_all_get_one_record(path: Path) -> None:
    with RecordStore.open(path) as store:
        store.add_task(TASK)

    def settle(number: int) -> Record:
        with RecordStore.open(path) as own:
            return own.settle(make_record("a", timed(number)))

    with ThreadPoolExecutor(8) as threads:
        settled = list(threads.map(settle, range(8)))
    with RecordStore.open(path) as store:
        assert [*{record.outcome.binary_hash for record in settled}] == [
            record.outcome.binary_hash for record in store.records(TASK.key, CONTEXT)
        ]


def test_many_records_of_one_call_are_compared_with_all_that_are_stored(store: RecordStore) -> None:
    records = [make_record(f"{index:05}", failed(FailureClass.NOT_APPLIED)) for index in range(1300)]
    assert store.add(records[::2]) == tuple(records[::2])
    assert store.add(records) == tuple(records[1::2])


def test_add_is_all_or_nothing(store: RecordStore) -> None:
    with pytest.raises(ValueError, match="has no task 'unknown'"):
        store.add([make_record("a"), make_record("b", task_key="unknown")])
    with pytest.raises(AttributeError):
        store.add([make_record("a"), make_record("b", outcome=None, trace="nonsense")])
    assert store.records(TASK.key, CONTEXT) == ()
    assert store.add([]) == ()


def test_best_is_the_first_of_the_fastest_valid_records_of_scripts(store: RecordStore) -> None:
    store.add([make_record("untuned", timed(6, ratio=99.0), origin=Origin.UNTUNED, trace=None, script="")])
    assert store.best(TASK.key, CONTEXT) is None
    records = [
        make_record("slow", timed(1, ratio=0.5)),
        make_record("wrong", failed(FailureClass.WRONG_RESULT)),
        make_record("fast", timed(2, ratio=3.5)),
        make_record("equal", timed(3, ratio=3.5)),
        make_record("other", timed(4, ratio=9.0), context_key="other"),
    ]
    store.add(records)
    assert store.best(TASK.key, CONTEXT) == records[2]


@pytest.mark.parametrize("ratio", [math.nan, math.inf, -1.0])
def test_a_timing_that_could_not_be_read_again_is_not_stored(store: RecordStore, ratio: float) -> None:
    with pytest.raises(ValueError, match="ratio is"):
        store.add([make_record("unknown", timed(5, ratio=ratio))])
    assert store.records(TASK.key, CONTEXT) == ()


def test_tasks_keep_their_first_description(store: RecordStore) -> None:
    other = replace(TASK, key="other", flags=())
    store.add_task(other)
    store.add_task(replace(TASK, name="renamed"))
    assert store.tasks() == (TASK, other)


def test_context_key_does_not_depend_on_the_order_of_its_parts() -> None:
    assert context_key(threads=2, cpu="x") == context_key(cpu="x", threads=2) == "cpu=x, threads=2"


def test_a_search_sees_the_records_from_before_it_first_began(store: RecordStore) -> None:
    assert store.begin_search("first") == 0
    store.add([make_record("a")])
    assert [store.begin_search(key) for key in ("second", "first")] == [1, 0]
    assert store.searches() == ("first", "second")


def test_a_search_keeps_what_it_had_tried_when_each_round_was_saved_last(store: RecordStore) -> None:
    store.begin_search("search")
    for round, trials in ((1, 9), (0, 8), (1, 16)):
        store.save_round("search", round, trials)
    assert store.rounds("search") == (8, 16)
    assert store.rounds("none") == ()
    with pytest.raises(ValueError, match="no search 'none'"):
        store.save_round("none", 0, 0)


def test_what_was_decided_first_holds(store: RecordStore, path: Path) -> None:
    assert store.decided("variants") is None
    with RecordStore.open(path) as other:
        decisions = [store.decide("variants", lambda: ["a", "b"]), other.decide("variants", lambda: ["b"])]
    assert decisions == [["a", "b"]] * 2
    assert store.decided("variants") == ["a", "b"]
    assert store.decide("share", lambda: 0.1 + 0.2) == store.decided("share") == 0.1 + 0.2
    assert store.decide("none of them", list) == store.decided("none of them") == []
    assert store.decide("zero", lambda: 0) == store.decide("zero", lambda: 1) == 0


def test_a_decision_that_could_not_be_made_is_made_by_the_next(store: RecordStore) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.decide("key", interrupted)
    assert store.decide("key", lambda: 2) == 2


def test_of_processes_that_decide_at_once_all_get_one_decision(path: Path) -> None:
    RecordStore.open(path).close()

    def decide(number: int) -> int:
        with RecordStore.open(path) as own:
            return own.decide("key", lambda: number)

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(decide, range(8)))) == 1


def test_a_clock_shows_what_was_saved_last(store: RecordStore) -> None:
    assert store.seconds("clock") == 0.0
    for seconds in (0.1 + 0.2, 2.5):
        store.save_seconds("clock", seconds)
        assert store.seconds("clock") == seconds


def test_a_search_has_one_cost_model(store: RecordStore) -> None:
    store.begin_search("search")
    assert store.load_cost_model("search") is None
    store.save_cost_model("search", b"\0first")
    store.save_cost_model("search", b"\0second\xff")
    assert store.load_cost_model("search") == b"\0second\xff"
    with pytest.raises(ValueError, match="no search 'none'"):
        store.save_cost_model("none", b"")


def test_a_store_in_memory_works_like_a_file() -> None:
    with RecordStore.open("sqlite://") as store:
        store.add_task(TASK)
        store.add([make_record("a")])
        assert store.best(TASK.key, CONTEXT) is not None


def test_a_url_and_a_path_name_the_same_file(path: Path) -> None:
    with RecordStore.open(str(path)) as store:
        store.add_task(TASK)
    with RecordStore.open(f"sqlite:///{path}") as store:
        assert store.tasks() == (TASK,)
        assert store.name == str(path)


def test_a_candidate_is_found_without_a_look_at_the_other_records(store: RecordStore) -> None:
    asked: list[tuple[str, object]] = []
    event.listen(store._database.engine, "before_cursor_execute", lambda *a: asked.append((a[2], a[3])))
    store.find(TASK.key, CONTEXT, "x")
    store.settle(make_record("x"))
    questions = [(text, values) for text, values in asked if "candidate_key" in text and text.startswith("SELECT")]
    assert len(questions) > 1
    with store._database.engine.connect() as connection:
        for text, values in questions:
            explained = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)  # type: ignore[arg-type]
            (plan,) = explained.scalars("detail")
            assert "candidate_key=?" in plan
