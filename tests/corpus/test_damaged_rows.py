"""Stores with damaged rows: what a run would begin from is read, or refused in one line; nothing else is raised."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from measured_tasks import DISPATCH, draws
from replayed_run import TARGET, matmul_dispatch, task_of
from speedups import timing

from mlir_sched.corpus import Corpus
from mlir_sched.corpus.choosing import chosen_sources
from mlir_sched.corpus.places import given_store, opened_corpora
from mlir_sched.corpus.sources import Asked, Place
from mlir_sched.database import RecordStore
from mlir_sched.database.record import Origin, Record, StoredTask, measuring_context
from mlir_sched.errors import UserError
from mlir_sched.outcome import Outcome, Verdict

TASK = task_of("product", DISPATCH)
ASKED = Asked(matmul_dispatch(64, 96, 64), TARGET)
COLUMNS = [
    *(f"tasks.{name}" for name in ("dispatch", "target", "flags", "name", "used")),
    *(f"records.{name}" for name in ("trace", "timing", "verdict", "failure", "context_key", "origin", "binary_hash")),
]
VALUES = {
    "cut": "substr({0}, 1, length({0}) / 2)",
    "empty": "''",
    "null in it": "'null'",
    "a number": "'5'",
    "a list": "'[1, 2]'",
    "an object": "'{{}}'",
    "a name": "'abc=d'",
    "infinite": "'[1e999]'",
    "deep": "'" + "[" * 5000 + "'",
    "bytes": "X'B4FF00'",
    "no text": "CAST(X'B4FF20' AS TEXT)",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a store with a task and its candidates."""
    path = tmp_path_factory.mktemp("whole") / "store.sqlite"
    context = measuring_context(TARGET)
    fields = TASK.key, context
    untuned = Record(*fields, "untuned", Origin.UNTUNED, None, "", outcome(1.0), 0, 0)
    tried = [Record(*fields, t.key, Origin.SCRIPT, t, "script", outcome(2.0), 0, 0) for t in draws(4)]
    with RecordStore.open(path) as store:
        store.add_task(StoredTask.of(TASK, TARGET))
        store.add([untuned, *tried])
    return path.read_bytes()


def outcome(ratio: float) -> Outcome:
    return Outcome(timing(1e-3, ratio), None, verdict=Verdict.RIGHT)


def damaged(path: Path, column: str, value: str) -> None:
    """Damage a column of all rows in which it is set."""
    table, name = column.split(".")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {name} = {VALUES[value].format(name)} WHERE {name} IS NOT NULL")


def test_a_whole_store_is_a_source(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    path.write_bytes(whole)
    with given_store(str(path)) as store:
        (source,) = chosen_sources([ASKED], {Place.GIVEN: Corpus.of_store(store)})
        assert len(source.measured.measured) == 4


@pytest.mark.parametrize(("column", "value"), list(itertools.product(COLUMNS, VALUES)))
def test_damaged_rows_are_refused_in_one_line_or_do_not_matter(
    whole: bytes, tmp_path: Path, column: str, value: str
) -> None:
    path = tmp_path / "store.sqlite"
    path.write_bytes(whole)
    damaged(path, column, value)
    content, notes = path.read_bytes(), list[str]()
    try:
        with given_store(str(path)) as store:
            chosen_sources([ASKED], {Place.GIVEN: Corpus.of_store(store)})
    except UserError as error:
        refusal = str(error)
        assert str(path) in refusal
        assert "\n" not in refusal
        with (
            RecordStore.open("sqlite://") as run,
            opened_corpora(
                run, generation=0, fresh=False, given="", user_file=path, note=notes.append, shipped=tmp_path / "none"
            ) as corpora,
        ):
            chosen_sources([ASKED], corpora, (), notes.append)
        assert any(refusal in note for note in notes), "in the store over all runs the same costs a note"
    assert path.read_bytes() == content
