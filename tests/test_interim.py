"""Programs with the best scripts so far are timed as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from contraction_payloads import matmul
from plans import flagged

from mlir_sched.meter import interim_times
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.choosing import build_variants
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.runner import RacingOptions, RunnerOptions
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuning.task_search import TaskSearch

pytestmark = pytest.mark.landing

QUICK = RunnerOptions(racing=RacingOptions(budget_s=0.02, min_pairs=2))


class Found:
    """What the search of a task has found: a random trace."""

    def __init__(self, task: Task, target: Target) -> None:
        assert task.dispatch is not None
        self.task = task
        self.space = DesignSpace(Space.default(target), task.dispatch, target)

    @property
    def history(self) -> Found:
        return self

    def best_trace(self) -> Trace:
        return self.space.sample(np.random.default_rng(3))


def test_programs_are_compiled_with_their_scripts_and_timed_in_turns(tmp_path: Path, here: Target) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(matmul(48, 64, 32).text)
    with MeasuredPrograms.open(Source(path, here), QUICK) as measured:
        default = build_variants(measured).built[0]

    def named(name: str, *flags: str) -> BuiltVariant:
        model = replace(default.model, flags=(*default.model.flags, *flags))
        return replace(default, variant=flagged(name), model=model, untuned_flags=(*default.untuned_flags, *flags))

    found = cast("Sequence[TaskSearch]", [Found(task, here) for task in default.model.tasks])
    broken = replace(named("broken"), vmfb=b"no program")
    programs = [
        (named("untuned"), ()),
        (broken, ()),
        (named("tiled", "--iree-opt-data-tiling"), found),  # its dispatches are others: it is timed without scripts
        (named("scripted"), found),
    ]
    times = interim_times(path, programs, QUICK)
    assert list(times) == ["untuned", "tiled", "scripted"]
    assert times["untuned"] == 1.0
    assert times["scripted"] > 0
    assert times["scripted"] != 1.0
    assert interim_times(path, [(broken, ())], QUICK) == {}
