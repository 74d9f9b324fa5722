"""What a run may begin from: its stores and the shipped candidates, as far as they can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from measured_tasks import DISPATCH, draws, measured_task, timed
from replayed_run import TARGET, task_of
from speedups import timing

from mlir_sched.corpus import MeasuredTask
from mlir_sched.corpus.files import write_task
from mlir_sched.corpus.places import opened_corpora, shipped_corpus
from mlir_sched.corpus.sources import Place
from mlir_sched.database import RecordStore
from mlir_sched.database.record import Origin, Record, StoredTask, context_parts, measuring_context
from mlir_sched.errors import UserError
from mlir_sched.outcome import Outcome, Verdict

TASK = task_of("product", DISPATCH)
(TRACE,) = draws(1)
Contexts = Callable[..., dict[Place, list[str]]]


def fill(path: Path, *generations: int) -> Path:
    """Make a store with a candidate in the contexts of some generations."""
    with RecordStore.open(path) as store:
        store.add_task(StoredTask.of(TASK, TARGET))
        for generation in generations:
            context = measuring_context(TARGET, generation=generation)
            right = Outcome(timing(1e-3, 2.0), None, verdict=Verdict.RIGHT)
            untuned = Record(TASK.key, context, "untuned", Origin.UNTUNED, None, "", right, 0, 0)
            store.add([untuned, replace(untuned, candidate_key="one", origin=Origin.SCRIPT, trace=TRACE)])
    return path


def generation_of(task: MeasuredTask) -> str:
    return context_parts(task.context).get("generation", "")


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def contexts(tmp_path: Path, notes: list[str]) -> Iterator[Contexts]:
    """Return the generations of what a run may begin from, by place; what is shipped has none, and one task."""
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    write_task(shipped / "a.jsonl.gz", measured_task([timed(TRACE)]))
    with RecordStore.open(fill(tmp_path / "run.sqlite", 0, 1)) as run:

        def found(
            generation: int = 1, given: str = "", user: Path | None = None, *, fresh: bool = False
        ) -> dict[Place, list[str]]:
            with opened_corpora(
                run,
                generation=generation,
                fresh=fresh,
                given=given,
                user_file=user,
                note=notes.append,
                shipped=shipped,
            ) as corpora:
                return {place: [generation_of(task) for task in corpus.tasks] for place, corpus in corpora.items()}

        yield found


def test_nothing_counts_from_before_a_fresh_start_in_the_runs_own_store(contexts: Contexts, tmp_path: Path) -> None:
    user, given = fill(tmp_path / "user.sqlite", 0), fill(tmp_path / "given.sqlite", 0, 1)
    assert contexts(1, str(given), user) == {
        Place.RUN: ["1"],
        Place.GIVEN: ["0", "1"],
        Place.USER: ["0"],
        Place.SHIPPED: [""],
    }


def test_a_fresh_start_has_what_is_shipped_alone(contexts: Contexts, tmp_path: Path) -> None:
    assert contexts(user=fill(tmp_path / "user.sqlite", 0), fresh=True) == {Place.SHIPPED: [""]}


def test_a_users_store_need_not_be_there_and_may_be_the_runs_own(
    contexts: Contexts, tmp_path: Path, notes: list[str]
) -> None:
    for user in (tmp_path / "none.sqlite", tmp_path / "run.sqlite"):
        assert contexts(user=user).keys() == {Place.RUN, Place.SHIPPED}
    assert not notes


def test_a_broken_users_store_costs_a_note(contexts: Contexts, tmp_path: Path, notes: list[str]) -> None:
    (tmp_path / "user.sqlite").write_text("no database, but a text that is long enough to look into")
    assert contexts(user=tmp_path / "user.sqlite").keys() == {Place.RUN, Place.SHIPPED}
    (note,) = notes
    assert "your store over all runs" in note


@pytest.mark.parametrize("text", [None, "no database, but a text that is long enough to look into"])
def test_a_store_that_was_given_and_is_missing_or_foreign_is_refused(
    contexts: Contexts, tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "given.sqlite").write_text(text)
    with pytest.raises(UserError, match=r"given\.sqlite"):
        contexts(given=str(tmp_path / "given.sqlite"))


def test_a_missing_or_broken_file_of_what_is_shipped_costs_a_note(tmp_path: Path, notes: list[str]) -> None:
    pools = tmp_path / "machine" / "pools"
    pools.mkdir(parents=True)
    write_task(pools / "a.jsonl.gz", measured_task([timed(TRACE)]))
    (tmp_path / "machine" / "b.jsonl.gz").write_bytes(b"no gzip")
    assert [task.key for task in shipped_corpus(notes.append, tmp_path).tasks] == ["key"]
    (note,) = notes
    assert "b.jsonl.gz" in note
    assert shipped_corpus(notes.append, tmp_path / "nothing").tasks == ()
    assert "nothing" in notes[-1]
