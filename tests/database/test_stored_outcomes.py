"""When what is stored answers for a candidate: same script, tool, machine and task, and no failure by accident."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from replayed_run import TARGET, matmul_dispatch, program_search, task_of
from replayed_run import searched as whole

from mlir_sched import __version__
from mlir_sched.database import RecordStore
from mlir_sched.database.record import Record, measuring_context, script_key
from mlir_sched.emission.run_result import others_measured
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.evaluation.evaluator import Evaluator
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.task_history import TaskHistory

TASK = task_of("matmul", matmul_dispatch(64, 96, 32))
SPACE = Space.default(TARGET)
TRIALS = 6
MACHINE = (("caches", "32K/1024K/32768K"), ("cpu", "EPYC/25/17"), ("runtime", "3.13.0"))


class Outcomes(Evaluator):
    """An evaluator that fails with a class, or times every script alike."""

    def __init__(self, failure: FailureClass | None = None) -> None:
        self.failure = failure
        self.scripts: list[str] = []

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        del following
        return Outcome(Timing(1e-3, 1e-3, 1e-3, 9, 1.0, 1.0, 1.0), None, f"untuned {task.name}", verdict=Verdict.RIGHT)

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        del task, known
        for index, script in enumerate(scripts):
            self.scripts.append(script)
            timing = Timing(5e-4, 5e-4, 5e-4, 9, 2.0, 2.0, 2.0) if self.failure is None else None
            yield (
                index,
                Outcome(
                    timing, Failure(self.failure, "planted") if self.failure else None, script, verdict=Verdict.RIGHT
                ),
            )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with RecordStore.open(tmp_path / "records.sqlite") as opened:
        yield opened


def searched(
    store: RecordStore, evaluator: Outcomes, *, target: Target = TARGET, seed: int = 0, trials: int = TRIALS
) -> TaskHistory:
    """Return the history of the search of one task, which starts from the same trace with every seed."""
    assert TASK.dispatch is not None
    start = DesignSpace(SPACE, TASK.dispatch, TARGET).sample(np.random.default_rng(7))
    options = TuneOptions(trials=trials, round_size=TRIALS, seed=seed)
    (search,) = whole(program_search(options, store, [TASK], target=target, start_from=[start]), evaluator).searches
    return search.history


def keys(history: TaskHistory) -> list[str]:
    return [record.candidate_key for record in history.records.values()]


def all_records(store: RecordStore) -> list[Record]:
    contexts = store.contexts(TASK.key)
    return [r for context in contexts for r in store.records(TASK.key, context) if r.trace is not None]


def test_what_is_stored_answers_for_the_same_run(store: RecordStore) -> None:
    first, again = Outcomes(), Outcomes()
    records = searched(store, first).records
    assert searched(store, again).records == records
    assert (len(first.scripts), again.scripts) == (TRIALS, [])


def test_what_is_stored_teaches_another_run_and_is_not_measured_again(store: RecordStore) -> None:
    first, second = Outcomes(), Outcomes()
    known = searched(store, first).records
    search = searched(store, second, seed=1)
    assert known.items() <= search.records.items()
    assert set(first.scripts).isdisjoint(second.scripts)


def test_a_script_that_a_changed_module_makes_is_measured_anew(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, again = Outcomes(), Outcomes(), Outcomes()
    searched(store, old)
    unchanged = DesignSpace.script
    monkeypatch.setattr(DesignSpace, "script", lambda self, trace: unchanged(self, trace) + "// changed\n")
    search = searched(store, new)
    assert new.scripts == [script + "// changed\n" for script in old.scripts]
    assert keys(search) == [*map(script_key, new.scripts)]
    other = searched(store, again, seed=1)
    assert {*keys(other)} == {*map(script_key, (*new.scripts, *again.scripts))}


def test_a_script_that_was_put_into_the_store_under_the_key_of_another_is_not_used(store: RecordStore) -> None:
    with RecordStore.open("sqlite://") as own:
        (legal,) = searched(own, Outcomes(), trials=1).records.values()
        task = own.tasks()[0]
    store.add_task(task)
    store.add([replace(legal, script="// something else\n")])
    for seed in (0, 1):
        evaluator = Outcomes()
        searched(store, evaluator, seed=seed)
        assert "// something else\n" not in evaluator.scripts


def test_a_trace_that_became_illegal_teaches_nothing(store: RecordStore, monkeypatch: pytest.MonkeyPatch) -> None:
    (legal,) = searched(store, Outcomes(), trials=1).records.values()
    assert legal.trace is not None
    old = replace(legal, candidate_key="old", trace=replace(legal.trace, sketch="removed"))
    store.add([old])
    known = searched(store, Outcomes(), seed=1).records.values()
    assert legal in known
    assert old not in known


@pytest.mark.parametrize(
    "machine",
    [
        (MACHINE[0], ("cpu", "EPYC/26/2"), MACHINE[2]),
        (("caches", "48K/1024K/32768K"), *MACHINE[1:]),
        (*MACHINE[:2], ("runtime", "3.13.1")),
    ],
)
def test_what_another_machine_measured_answers_for_nothing(
    store: RecordStore, machine: tuple[tuple[str, str], ...]
) -> None:
    here, there = replace(TARGET, machine=MACHINE), replace(TARGET, machine=machine)
    assert here.key == there.key, "the code is the same"
    searched(store, Outcomes(), target=here)
    evaluator = Outcomes()
    assert len(searched(store, evaluator, target=there).records) == len(evaluator.scripts) == TRIALS


def test_what_another_version_of_the_tool_measured_answers_for_nothing(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched(store, Outcomes())
    monkeypatch.setattr("mlir_sched.database.record.__version__", "9.9.9")
    evaluator = Outcomes()
    assert len(searched(store, evaluator).records) == len(evaluator.scripts) == TRIALS
    assert store.contexts(TASK.key)[-1] == "generation=0, threads=1, tool=9.9.9"


def test_records_of_another_machine_are_mentioned_and_what_the_user_chose_is_not(store: RecordStore) -> None:
    here, there = replace(TARGET, machine=MACHINE), replace(TARGET, machine=(*MACHINE[:2], ("runtime", "3.14.0")))
    searched(store, Outcomes(), target=replace(here, cores=2))
    assert others_measured(store, [TASK.key], measuring_context(here, generation=1)) == ()
    searched(store, Outcomes(), target=here)
    assert others_measured(store, [TASK.key], measuring_context(replace(here, cores=2))) == (), "nor are single calls"
    searched(store, Outcomes(), target=there)
    (text,) = others_measured(store, [TASK.key, "unknown"], measuring_context(here))
    where = "from another machine or version (runtime 3.14.0)"
    assert text == f"the store has records of a dispatch {where}, which are not used without --transfer"
    assert others_measured(store, ["unknown"], measuring_context(here)) == ()


def test_a_context_names_processor_caches_runtime_threads_and_tool() -> None:
    context = measuring_context(replace(TARGET, machine=MACHINE), generation=2)
    assert context == (
        f"caches=32K/1024K/32768K, cpu=EPYC/25/17, generation=2, runtime=3.13.0, threads=1, tool={__version__}"
    )


LASTING = {
    "illegal_trace",
    "script_error",
    "not_applied",
    "data_race",
    "compile_error",
    "assembly_error",
    "wrong_result",
}


@pytest.mark.parametrize("kind", [kind for kind in FailureClass if kind not in LASTING])
def test_a_failure_that_may_be_the_machines_is_tried_again_by_another_run(
    store: RecordStore, kind: FailureClass
) -> None:
    failing, working, resumed = Outcomes(kind), Outcomes(), Outcomes()
    before = searched(store, failing, trials=2)
    after = searched(store, working, seed=1, trials=1)
    (again,) = after.records.values()
    assert working.scripts == failing.scripts[:1]
    assert (again.attempt, again.outcome.failure) == (1, None)
    assert searched(store, resumed, trials=2).records == before.records, "a resumed run sees what it saw"
    assert resumed.scripts == []
    assert [r.attempt for r in all_records(store)] == [0, 0, 1]


@pytest.mark.parametrize("kind", [FailureClass(kind) for kind in sorted(LASTING)])
def test_a_failure_of_the_script_is_remembered(store: RecordStore, kind: FailureClass) -> None:
    failing, working = Outcomes(kind), Outcomes()
    searched(store, failing, trials=1)
    search = searched(store, working, seed=1, trials=1)
    assert [r.outcome.failure.kind for r in search.records.values() if r.outcome.failure] == [kind]
    assert working.scripts == []


def test_a_candidate_that_another_process_measured_meanwhile_has_its_outcome(
    store: RecordStore, tmp_path: Path
) -> None:
    class Slower(Outcomes):
        """Another run of the same search is done while this one measures."""

        def evaluate(
            self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
        ) -> Iterator[tuple[int, Outcome]]:
            with RecordStore.open(tmp_path / "records.sqlite") as other:
                searched(other, Outcomes(FailureClass.WRONG_RESULT), trials=3)
            yield from super().evaluate(task, scripts, known)

    records = searched(store, Slower(), trials=3).records
    assert {r.outcome.failure.kind for r in records.values() if r.outcome.failure} == {FailureClass.WRONG_RESULT}
    assert list(records.values()) == [replace(record, script="") for record in all_records(store)]
