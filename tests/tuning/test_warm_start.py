"""What a search learns from the records of earlier runs, and what this costs where there are many."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from speedups import Speedups
from task_searches import PlainScripts, run_round, task_search

from mlir_sched.database import RecordStore
from mlir_sched.evaluation import task_records
from mlir_sched.space.space import Space
from mlir_sched.space.user_modules import load_modules
from mlir_sched.trace import Trace
from mlir_sched.tuning.task_search import TaskSearch

EARLIER = 48


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the keys of the traces whose scripts are printed from now on."""
    keys = list[str]()
    script = PlainScripts.script

    def noted(self: PlainScripts, trace: Trace, applied: str | None = None) -> str:
        keys.append(trace.key)
        return script(self, trace, applied)

    monkeypatch.setattr(PlainScripts, "script", noted)
    return keys


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    """Return a store with records of an earlier run, of which the last is the fastest."""
    with RecordStore.open(tmp_path / "records.sqlite") as opened:
        run_round(
            task_search(opened, sources="a"), Speedups({"matmul": lambda n: 0.5 + n}), size=EARLIER, limit=EARLIER
        )
        yield opened


def started(store: RecordStore, *, sources: str = "a", evolution: bool = False) -> TaskSearch:
    search = task_search(store, since=store.last_record(), sources=sources, evolution=evolution)
    search.warm_start()
    return search


def test_records_of_the_same_sources_are_learnt_without_a_script_being_printed(
    store: RecordStore, printed: list[str]
) -> None:
    printed.clear()
    search = started(store)
    assert len(search.history.records) == EARLIER
    assert not printed


@pytest.mark.parametrize("sources", ["b", ""])
def test_scripts_of_other_or_unknown_sources_are_printed_and_compared(
    store: RecordStore, printed: list[str], monkeypatch: pytest.MonkeyPatch, sources: str
) -> None:
    printed.clear()
    assert len(started(store, sources=sources).history.records) == EARLIER == len(printed)
    unchanged = PlainScripts.script
    monkeypatch.setattr(
        PlainScripts, "script", lambda self, trace: unchanged(self, trace) + "changed" * (trace.key[-1] < "8")
    )
    found = started(store, sources=sources).history.records
    assert 0 < len(found) < EARLIER
    assert min(key[-1] for key in found) >= "8"


@pytest.mark.parametrize(("sources", "limit"), [("a", "MOST_KNOWN"), ("b", "MOST_PRINTED")])
def test_of_many_records_a_sample_is_read_and_the_fastest(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch, sources: str, limit: str
) -> None:
    everything = started(store).history
    monkeypatch.setattr(task_records, limit, 10)
    monkeypatch.setattr(task_records, "FASTEST", 2)
    found = started(store, sources=sources).history
    assert 10 <= len(found.records) <= 12
    assert [r.candidate_key for r in found.ranked()][:2] == [r.candidate_key for r in everything.ranked()][:2]
    assert np.median([r or 0.0 for r in found.ratios()]) < 40, "slow ones, too"


def test_what_was_measured_is_not_suggested_again_beyond_the_sample(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = set(started(store).history.records)
    monkeypatch.setattr(task_records, "MOST_KNOWN", 4)
    monkeypatch.setattr(task_records, "FASTEST", 2)
    search = started(store)  # with the seed of the earlier run
    assert len(search.history.records) < EARLIER
    assert not known & {trace.key for trace in search.strategy.suggest(EARLIER)}


def test_decisions_of_a_stored_trace_are_those_of_the_space(store: RecordStore) -> None:
    (record, *_) = started(store).history.records.values()
    assert record.trace is not None
    data = record.trace.to_json()
    for decision in data["decisions"]:
        if decision["distribution"]["kind"] == "categorical" and isinstance(decision["value"], str):
            decision["distribution"] = {"kind": "categorical", "choices": [decision["value"], "foreign"]}
    foreign = replace(record, trace=Trace.from_json(data), candidate_key="foreign", outcome=record.outcome, tool="b")
    assert foreign.trace != record.trace
    with RecordStore.open("sqlite://") as other:
        other.add_task(store.tasks()[0])
        other.add([replace(foreign, tool=f"{record.tool.split('+')[0]}+a")])
        (found,) = started(other).history.records.values()
    assert found.trace == record.trace


def test_sources_of_a_space_change_with_the_files_of_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = Space([]).sources
    assert own == Space([]).sources != ""
    code = """
from mlir_sched.transform_scripts.module import TransformModule


class Empty(TransformModule):
    name = "empty"

    def extend(self, *_):
        return []
"""
    (tmp_path / "sources_of_mine.py").write_text(code)
    (module,) = load_modules(["sources_of_mine:Empty"])
    first = Space([module]).sources
    (tmp_path / "sources_of_mine.py").write_text(code + "# changed\n")
    assert len({own, first, Space([module]).sources}) == 3
    monkeypatch.setitem(sys.modules, "sources_of_mine", ModuleType("sources_of_mine"))
    assert not Space([module]).sources, "a module without a file"
