"""Short programs run in the thread that calls where waking IREE's workers takes longer than they save."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from contraction_payloads import matmul
from short_sessions import short_sessions

from mlir_sched import TuneOptions, replay, tune
from mlir_sched.cli.tune import summary_lines
from mlir_sched.compiler import CompilerPool
from mlir_sched.emission.final_measurement import ProgramTimings, measure_program
from mlir_sched.program.variants.choosing import BuiltVariants, build_variants
from mlir_sched.program.variants.compile_policy import CompilePolicy
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.runner import RacingOptions, Runner, RunnerOptions
from mlir_sched.runner.checks.numeric_checks import checks_for_task
from mlir_sched.runner.program import program_of_task
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tuned_folder.result import TuneResult

pytestmark = [
    pytest.mark.landing,
    pytest.mark.alone,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="several threads need two cores"),
]
SHORT = matmul(8, 64, 32).text
"""A call takes 2 us in the thread that calls, and some 10 us through the task system."""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> TuneResult:
    """Return what tuning a short program on two threads finds."""
    folder = tmp_path_factory.mktemp("local_sync")
    (folder / "model.mlir").write_text(SHORT)
    with short_sessions():
        return tune(folder / "model.mlir", folder / "tuned", options=TuneOptions(trials=16, threads=2))


class OnlyO3(CompilePolicy):
    def should_compile(self, name: str) -> bool:
        return name == "O3"


def variants(path: Path, here: Target, *, local_sync: bool) -> BuiltVariants:
    path.write_text(SHORT)
    options = RunnerOptions(threads=2, racing=RacingOptions(budget_s=0.02, min_pairs=2))
    with MeasuredPrograms.open(Source(path, replace(here, cores=2)), options) as times:
        return build_variants(times, OnlyO3(), local_sync=local_sync)


def test_every_variant_of_a_short_program_is_timed_in_the_calling_thread_unless_that_is_unwanted(
    tmp_path: Path, here: Target
) -> None:
    both = variants(tmp_path / "model.mlir", here, local_sync=True).built
    several = [built for built in both if not built.variant.plan.local_sync]
    assert [b.variant.name for b in both] == [
        *(b.variant.name for b in several),
        *(f"{b.variant.name} on local-sync" for b in several),
    ]
    assert all(b.timing is not None for b in both)
    assert [b.vmfb for b in both] == [b.vmfb for b in several] * 2, "nothing is compiled twice"
    never = variants(tmp_path / "model.mlir", here, local_sync=False).built
    assert [b.variant.name for b in never] == [b.variant.name for b in several]


def test_a_long_program_is_not_tried_there(tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlir_sched.program.variants.choosing.SHORT_S", 0.0)
    built = variants(tmp_path / "model.mlir", here, local_sync=True).built
    assert not any(b.variant.plan.local_sync for b in built)


def test_the_result_says_which_device_the_program_is_for(result: TuneResult) -> None:
    assert result.threads == 2
    assert result.program.device == "local-sync"
    assert result.program.variant.endswith(" on local-sync")
    assert result.program.tuned.ratio_low > 1.0
    assert any("--device=local-sync" in line for line in summary_lines(result))
    assert any(line.startswith("whole program on 1 thread: ") for line in summary_lines(result))
    assert result.output is not None
    assert json.loads((Path(result.output) / "summary.json").read_text())["program"]["device"] == "local-sync"


def test_replay_runs_the_program_there(result: TuneResult, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[CompiledModel] = []

    def spy(*arguments: Any) -> ProgramTimings:
        measured.append(arguments[-1])
        return measure_program(*arguments)

    monkeypatch.setattr("mlir_sched.replaying.replay.measure_program", spy)
    assert result.output is not None
    replayed = replay(result.output, result.model)
    assert replayed.holds, replayed.all_problems
    assert [model.local_sync for model in measured] == [True]


def test_a_short_dispatch_is_timed_without_the_wake_up_of_the_workers(tmp_path: Path, here: Target) -> None:
    (tmp_path / "model.mlir").write_text(SHORT)
    (task,) = extract(tmp_path / "model.mlir", here).tasks
    assert task.dispatch is not None
    seconds = list[float]()
    options = RunnerOptions(threads=2)
    for length in (0, options.chain_length):
        with CompilerPool(task.flags, workers=1, chain_length=length) as pool, Runner(options) as runner:
            ((_, compiled),) = pool.compile(task.source, [None], task.constants)
            assert compiled.vmfb is not None
            program = program_of_task(task, compiled.vmfb)
            timing, (own,) = runner.measure(program, [program], checks_for_task(task))
        assert own.timing is not None
        assert own.timing.ratio == pytest.approx(1.0, abs=0.5)
        seconds.append(timing.median_s)
    assert seconds[1] < 0.7 * seconds[0]
