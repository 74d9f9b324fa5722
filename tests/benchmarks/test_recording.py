"""A network is recorded: every plan, the course of each task, and what the end costs; a stopped recording goes on."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path

import iree_cases as cases
import pytest

from benchmarks.allocation import record as command
from benchmarks.allocation import recording
from benchmarks.allocation.recorded import read_run, write_run
from benchmarks.allocation.replay import replay
from mlir_sched.database import RecordStore
from mlir_sched.program.variants.programs import Programs
from mlir_sched.program.variants.rewritten import RewrittenVariants, flagged_variants
from mlir_sched.targets.target import Target

pytestmark = pytest.mark.landing


def arguments(model: Path, folder: Path, minutes: float) -> argparse.Namespace:
    return argparse.Namespace(
        name="product",
        model=model,
        parameters=[],
        threads=1,
        family="none",
        candidates=2,
        minutes=minutes,
        folder=folder,
    )


def test_a_recording_that_was_stopped_goes_on_and_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def two_plans(target: Target) -> list[object]:
        return list(flagged_variants(target)[:2])

    model = tmp_path / "model.mlir"
    model.write_text(cases.MATMUL)
    monkeypatch.setattr(recording, "flagged_variants", two_plans)
    monkeypatch.setattr(Programs, "rewriting", lambda self: nullcontext(RewrittenVariants))
    assert command.record(arguments(model, tmp_path, 0.0)) is None, "no time for a single round"
    run = command.record(arguments(model, tmp_path, 10.0))
    assert run is not None
    assert [plan.name for plan in run.plans] == ["default", "O3"]
    assert all(plan.call_s and plan.build_s > 0 and plan.look_s > 0 for plan in run.plans)
    searched = [task for task in run.tasks if task.tunable and not task.course_of]
    assert searched
    for task in searched:
        assert task.untuned_s
        assert len(task.candidates) >= 2
        assert all(candidate.seconds > 0 for candidate in task.candidates)
    assert run.end.emission_s > 0
    with RecordStore.open(tmp_path / "product-1.sqlite") as store:
        measured = len(store.work_costs())
    monkeypatch.setattr(recording.Recording, "finish", lambda self: run.end)
    again = command.record(arguments(model, tmp_path, 10.0))
    assert again is not None
    assert again.tasks == run.tasks, "what was measured is not measured again"
    with RecordStore.open(tmp_path / "product-1.sqlite") as store:
        kinds = [cost.kind.value for cost in store.work_costs()[measured:]]
    assert {*kinds} == {"build"}
    path = tmp_path / "run.json.gz"
    write_run(run, path)
    assert read_run(path) == run
    assert replay(run, path, minutes=1).over_best >= 1.0 - 1e-9
