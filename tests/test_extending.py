"""The examples of docs/extending.md: they keep their contracts, and a run takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from extending_page import EXAMPLES
from folders import ROOT

from mlir_sched import RecordStore, TuneOptions, tune
from mlir_sched.database.work_cost import WorkKind

TestGreedy = EXAMPLES.TestGreedy
TestNearest = EXAMPLES.TestNearest
TestInTurns = EXAMPLES.TestInTurns


@pytest.mark.promise
def test_a_run_takes_all_of_them_and_stops_when_a_callback_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts, heard = EXAMPLES, []

    def two_rounds(trial: Any) -> None:
        heard.append(trial)
        if len(heard) == 16:
            raise StopIteration("enough")

    result = tune(
        ROOT / "examples" / "linear_silu.mlir",
        tmp_path / "tuned",
        options=TuneOptions(trials=200, threads=1, round_size=8),
        strategy=parts.Greedy,
        cost_model=parts.Nearest,
        scheduler=parts.InTurns(),
        callbacks=[lambda trial: print(trial.dispatch, trial.trace.sketch), two_rounds],
    )
    assert "a callback raised StopIteration: enough" in result.stopped
    assert result.trials == len(heard) == 16
    assert len(capsys.readouterr().out.splitlines()) == 16
    assert (tmp_path / "tuned" / "flags.txt").exists()
    with RecordStore.open(tmp_path / "tuned" / "records.sqlite", read_only=True) as store:
        costs = store.work_costs()
    kinds = {cost.kind for cost in costs}
    assert kinds >= {WorkKind.BUILD, WorkKind.CAPTURE, WorkKind.UNTUNED, WorkKind.CANDIDATES, WorkKind.EMISSION}
    assert sum(cost.count for cost in costs if cost.kind is WorkKind.CANDIDATES) == 16
    assert 0.5 * result.seconds < sum(cost.seconds for cost in costs) < result.seconds
