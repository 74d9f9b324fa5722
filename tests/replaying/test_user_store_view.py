"""What the view of a user's store counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from replayed_run import TARGET, matmul_dispatch, task_of
from stored_records import make_record

from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredTask, context_key
from mlir_sched.database.user_store import UserStore
from mlir_sched.replaying.user_store_view import Part, view_user_store

ONE, TWO = (context_key(cpu="EPYC", threads=threads) for threads in (1, 2))
DEVICE = context_key(device="a GPU", threads=1)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MLIR_SCHED_STORE", str(tmp_path / "user.sqlite"))
    return tmp_path / "user.sqlite"


def fill(file: Path, tasks: dict[StoredTask, list[str]]) -> None:
    """Add a record per task and context."""
    with RecordStore.open(file.with_name("own.sqlite")) as own, UserStore(file, own) as users:
        for task, contexts in tasks.items():
            users.add(task, [make_record("a", task_key=task.key, context_key=context) for context in contexts])
        assert users.note == ""


def product(name: str, size: int) -> StoredTask:
    return StoredTask.of(task_of(name, matmul_dispatch(size, size, size)), TARGET)


def test_tasks_are_counted_by_their_ops_and_by_machines(file: Path) -> None:
    unknown = replace(product("c", 8), dispatch=None)
    fill(file, {product("a", 8): [ONE, TWO], product("b", 16): [ONE], unknown: [DEVICE]})
    view = view_user_store()
    assert (view.path, view.bytes, view.tasks, view.records) == (str(file), file.stat().st_size, 3, 4)
    assert view.ops == (Part("contraction, f32", 2, 3), Part("not tunable", 1, 1))
    assert set(view.machines) == {Part("EPYC, 1 thread", 2, 2), Part("EPYC, 2 threads", 1, 1), Part("a GPU", 1, 1)}
    assert view.to_json()["ops"][0] == {"name": "contraction, f32", "tasks": 2, "records": 3}


def test_contexts_that_name_no_machine_are_shown_as_they_are(file: Path) -> None:
    fill(file, {product("a", 8): ["nothing", "cpu=EPYC"]})
    assert {each.name for each in view_user_store().machines} == {"nothing", "cpu=EPYC"}


def test_tasks_that_a_run_adds_meanwhile_are_not_counted(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(file, {product("a", 8): [ONE], product("b", 8): [ONE]})
    tasks = RecordStore.tasks
    monkeypatch.setattr(RecordStore, "tasks", lambda store: tasks(store)[:1])
    view = view_user_store()
    assert (view.tasks, view.records) == (1, 1)
