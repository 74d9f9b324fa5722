"""Searches of tables are compared by the trials that they need, and models by how often their intervals hold."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from measured_tasks import DISPATCH, draws, measured_task, timed, whole_task
from numpy.typing import NDArray
from replayed_run import matmul_dispatch

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Figure
from benchmarks.search.measured_space import MeasuredSpace
from benchmarks.strategies import acquisition, command, selection
from benchmarks.strategies.acquisition import Search, Setting, coverage, judgement, results_table
from benchmarks.strategies.verdict import Verdict
from benchmarks.strategies.watched import Watched
from mlir_sched.corpus.files import write_task
from mlir_sched.errors import UserError
from mlir_sched.models import Measured, ModelTask, RandomModel, Rows

PUBLISHING = Publishing(None, (), "command")
SETTING = Setting(seeds=2, trials=32, round_size=8, within=0.02)


def searched(way: str, trials: Sequence[float], inside: int = 8) -> list[Search]:
    """Return searches of three tables with two seeds each."""
    return [
        Search(f"table {number // 2}", f"family {number // 2}", way, number % 2, needed, 10, inside)
        for number, needed in enumerate(trials)
    ]


TODAY = searched("ucb", [20, 40, 10, 64, 30, 8])


class Halves(RandomModel):
    """Has every throughput between a quarter and a half, and notes what it is told."""

    noted = 0

    def predict_interval(self, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.full(len(rows), 0.25), np.full(len(rows), 0.5)

    def note_errors(self, rows: Rows, throughput: NDArray[np.float64]) -> None:
        self.noted += len(rows)


def test_rows_in_the_intervals_that_were_given_before_are_counted() -> None:
    inner = Halves()
    model = Watched(inner)
    rows = Rows(ModelTask(0), np.zeros((5, 2), np.float32))
    model.fit([Measured(rows, np.linspace(0, 1, 5))])
    model.note_errors(rows, np.array([0.0, 0.25, 0.4, 0.5, 1.2]))
    model.note_errors(rows, np.array([0.3, 0.6, 0.6, 0.6, 0.6]))
    assert (model.judged, model.inside, inner.noted) == (10, 4, 10)


def test_a_way_that_needs_as_many_trials_is_no_default_and_one_that_saves_enough_is_left_to_live_searches() -> None:
    same = judgement([*TODAY, *searched("mean", [each.trials for each in TODAY])], "mean")
    assert same.verdict is Verdict.OPTION
    assert same.against[0] == "1.00 of the trials until near the best, where the gate asks for 0.9"
    fewer = judgement([*TODAY, *searched("mean", [0.8 * each.trials for each in TODAY])], "mean")
    assert fewer.against == ("it is not searched live yet",)
    uneven = searched("mean", [4, 8, 12, 80, 36, 10])
    (why,) = judgement([*TODAY, *uneven], "mean").against
    assert why.startswith("it may save no trials: its interval ends at 1.2")


def test_shares_in_intervals_are_means_over_tables_and_judged_by_what_was_asked() -> None:
    found = [*TODAY, *searched("quantile", [20] * 6, inside=9)]
    assert coverage(found, "ucb") == Figure(0.8, 0.8, 0.8)
    uneven = [Search("table 3", "", "ucb", 0, 8, 10, 4), *TODAY, Search("table 4", "", "ucb", 0, 8, 0, 0)]
    share = coverage(uneven, "ucb")
    assert share is not None
    assert (share.low, share.high) == (0.4, 0.8)
    assert share.median == pytest.approx(0.7)
    assert coverage([Search("a", "", "ucb", 0, 8, 0, 0)], "ucb") is None
    for inside, says in ((9, "does not hold: 90.0%"), (8, "holds: 80.0%")):
        table = results_table([*TODAY, *searched("quantile", [20] * 6, inside)], SETTING, PUBLISHING)
        assert table.notes[-1].endswith(says)


def test_a_table_has_the_medians_of_every_way_and_compares_them_with_today() -> None:
    table = results_table([*TODAY, *searched("mean", [10, 20, 5, 32, 15, 4])], SETTING, PUBLISHING)
    rows = dict(table.rows)
    assert rows["ucb"][:3] == ("30 (20 to never)", "never (10 to never)", "19 (8 to 30)")
    assert rows["ucb"][3] is None
    assert rows["mean"][3] == Figure(0.5, 0.5, 0.5)
    assert rows["mean"][-1] == Verdict.OPTION


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the command with a small table and two pools of one family; its options can be changed."""
    for name, dispatch in (("first", DISPATCH), ("second", matmul_dispatch(96, 64, 96))):
        traces = draws(30, dispatch)
        task = measured_task(map(timed, traces, [1.0 + int(trace.key[:4], 16) % 97 for trace in traces]), dispatch)
        (folder := tmp_path / "pools").mkdir(exist_ok=True)
        write_task(folder / f"{name}.jsonl.gz", task)
    (tmp_path / "tables").mkdir()
    write_task(tmp_path / "tables" / "small.jsonl.gz", whole_task())
    places = [str(tmp_path / "tables"), "--pools", str(tmp_path / "pools"), "--keep", str(tmp_path / "kept")]
    numbers = ["--seeds", "2", "--trials", "24", "--round-size", "8", "--draws", "1", "--ways", "quantile"]
    asked = ["strategies", "acquisition", *places, *numbers]
    monkeypatch.setattr(sys, "argv", asked)
    return asked


def test_the_command_prints_both_tables_and_searches_nothing_twice(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command.main()
    first = capsys.readouterr().out
    for words in ("ucb", "quantile", "all rows", "uncertainty", "fastest", "intervals hold", "option"):
        assert words in first
    assert "ping_pong" not in first

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("it is searched already")

    monkeypatch.setattr(acquisition, "course", refused)
    monkeypatch.setattr(selection, "chosen_rows", refused)
    command.main()
    assert capsys.readouterr().out == first
    arguments += ["--trials", "32"]
    with pytest.raises(AssertionError, match="searched already"):
        command.main()


def test_a_search_that_comes_near_nothing_counts_as_twice_its_trials() -> None:
    space, setting = measured_space_of_one_good(), Setting(seeds=1, trials=4, round_size=4, within=0.0)
    found = setting.searched(space, "family", "ucb", 0)
    assert found.trials == 8.0
    whole = Setting(seeds=1, trials=len(space.traces), round_size=8, within=0.0)
    assert whole.searched(space, "family", "ucb", 0).trials <= len(space.traces)


def measured_space_of_one_good() -> MeasuredSpace:
    """Return a table whose last candidate is fastest."""
    task = whole_task()
    seconds = np.ones(len(task.traces))
    seconds[-1] = 0.5
    return MeasuredSpace("made up", task.traces, task.features(), seconds)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (["--seeds", "0"], "at least a seed"),
        (["--trials", "4"], "a round of trials"),
        (["--pools", "nowhere"], "corpus collect pools"),
    ],
)
def test_options_that_do_not_fit_end_in_one_line(arguments: list[str], changed: list[str], why: str) -> None:
    arguments += changed
    with pytest.raises(UserError, match=why):
        command.main()


def test_a_folder_without_tables_ends_in_one_line(arguments: list[str], tmp_path: Path) -> None:
    arguments[2] = str(tmp_path / "nothing")
    with pytest.raises(UserError, match="corpus collect complete"):
        command.main()
