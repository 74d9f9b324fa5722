"""A record store as a corpus: every task in every context with what was measured of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from measured_tasks import DISPATCH, draws
from replayed_run import TARGET, task_of
from speedups import timing

from mlir_sched.corpus import Corpus, Origin
from mlir_sched.database import RecordStore
from mlir_sched.database import record as records
from mlir_sched.database.record import Record, StoredTask, context_key
from mlir_sched.errors import Failure, FailureClass, UserError
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.trace import Trace

TASK = task_of("product", DISPATCH)
FIRST, SECOND, THIRD = draws(3)
MACHINE = replace(TARGET, machine=(("cpu", "first"), ("runtime", "3.13.0")))
HERE, THERE = context_key(cpu="first", threads=1), context_key(cpu="second", threads=4, caches="48K/2048K/0K")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with RecordStore.open(tmp_path / "store.sqlite") as store:
        store.add_task(StoredTask.of(TASK, MACHINE))
        yield store


def untuned(context: str = HERE, median_s: float = 2e-3) -> Record:
    outcome = Outcome(timing(median_s, 1.0), None, verdict=Verdict.RIGHT)
    return Record(TASK.key, context, "untuned", records.Origin.UNTUNED, None, "", outcome, 0, 0)


def tried(trace: Trace, outcome: Outcome | float = 4.0, context: str = HERE, script: str = "script") -> Record:
    if isinstance(outcome, float):
        outcome = Outcome(timing(1e-3, outcome), None, verdict=Verdict.RIGHT)
    return Record(TASK.key, context, f"{script} {trace.key}", records.Origin.SCRIPT, trace, script, outcome, 0, 0)


def test_a_store_gives_each_task_in_each_context(store: RecordStore) -> None:
    wrong = Outcome(None, Failure(FailureClass.WRONG_RESULT, "differs"))
    store.add([untuned(), tried(FIRST), tried(SECOND, wrong), untuned(THERE, 1e-3), tried(THIRD, context=THERE)])
    here, there = Corpus.of_store(store).tasks
    assert (here.key, here.name, here.dispatch, here.target) == (TASK.key, "product", DISPATCH, MACHINE)
    assert (here.context, here.untuned_s, there.context, there.untuned_s) == (HERE, 2e-3, THERE, 1e-3)
    assert here.traces == (FIRST, SECOND)
    assert here.seconds.tolist() == [5e-4, float("inf")]
    assert there.seconds.tolist() == [2.5e-4]
    second = replace(MACHINE, cores=4, machine=(("cpu", "second"), ("runtime", "3.13.0")))
    assert there.target == replace(second, l1_bytes=48 << 10, l2_bytes=2 << 20, l3_bytes=0)
    assert {*here.origins, *there.origins} == {Origin.MODEL}


def test_a_context_that_cannot_be_read_is_left_out(store: RecordStore) -> None:
    store.add([untuned(), tried(FIRST), untuned("odd"), tried(SECOND, context="odd")])
    (task,) = Corpus.of_store(store).tasks
    assert (task.context, task.traces) == (HERE, (FIRST,))


def test_later_records_do_not_count(store: RecordStore) -> None:
    store.add([untuned(), tried(FIRST)])
    last = store.last_record()
    store.add([tried(SECOND), untuned(THERE), tried(THIRD, context=THERE)])
    (task,) = Corpus.of_store(store, until=last).tasks
    assert task.traces == (FIRST,)


def test_what_shows_nothing_is_left_out(store: RecordStore) -> None:
    estimated = Outcome(Timing.estimated(1e-3, 1e-3), None)
    store.add_task(replace(StoredTask.of(TASK, TARGET), key="copies", dispatch=None))
    store.add(
        [
            tried(FIRST, context=context_key(case="no untuned code")),
            untuned(context_key(case="no candidate")),
            replace(untuned(context_key(case="estimates")), outcome=estimated),
            tried(FIRST, estimated, context=context_key(case="estimates")),
            untuned(context_key(case="a bad day")),
            tried(FIRST, Outcome(None, Failure(FailureClass.RUN_CRASH, "died")), context=context_key(case="a bad day")),
            replace(untuned(), task_key="copies"),
        ]
    )
    assert Corpus.of_store(store).tasks == ()


def test_of_several_records_of_a_trace_the_last_one_counts(store: RecordStore) -> None:
    store.add([untuned(), tried(FIRST, 4.0, script="old"), tried(FIRST, 8.0, script="new")])
    (task,) = Corpus.of_store(store).tasks
    assert task.seconds.tolist() == [2.5e-4]


def test_a_dispatch_that_cannot_be_one_is_refused_with_the_name_of_the_store(store: RecordStore) -> None:
    store.add_task(replace(StoredTask.of(TASK, TARGET), key="other", dispatch=replace(DISPATCH, results=(9,))))
    store.add([replace(untuned(), task_key="other"), replace(tried(FIRST), task_key="other")])
    with pytest.raises(UserError, match=r"store\.sqlite cannot be read: not a dispatch"):
        Corpus.of_store(store)


def test_records_can_be_read_without_their_scripts(store: RecordStore) -> None:
    store.add([tried(FIRST, script="a long text")])
    ((full,), (short,)) = (store.records(TASK.key, HERE, scripts=whether) for whether in (True, False))
    assert full.script == "a long text"
    assert short == replace(full, script="")
