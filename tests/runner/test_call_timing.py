"""The runner on a device whose dispatches IREE does not record; the CPU, as IREE's device ``local-sync``, stands in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from contraction_payloads import matmul

from mlir_sched import TuneOptions, tune
from mlir_sched.compiler import CompilerPool
from mlir_sched.compiler.chain import DEVICE_LENGTH
from mlir_sched.errors import FailureClass
from mlir_sched.outcome import Verdict
from mlir_sched.runner import Program, Runner, RunnerOptions
from mlir_sched.runner.checks.numeric_checks import checks_for_dispatch
from mlir_sched.runner.program import program_of_task
from mlir_sched.runner.protocol import BASELINE, CallsSetup, Prepare
from mlir_sched.runner.worker.benches.calls_bench import CHAINED_S, CallsBench
from mlir_sched.targets import TARGETS, TargetKind, llvm_cpu
from mlir_sched.targets.clock import CALLS
from mlir_sched.targets.kind import DEFAULT
from mlir_sched.targets.target import LOCAL_SYNC, Driver, Target
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task

pytestmark = pytest.mark.alone
SHORT, LONG = matmul(16, 16, 16), matmul(512, 512, 512)
"""Two products, far below and far above :data:`CHAINED_S` on any CPU."""


@pytest.fixture
def stand_in() -> Target:
    """This machine's CPU as a device whose dispatches IREE does not record."""
    return replace(llvm_cpu.detect(1), driver=Driver(LOCAL_SYNC, CALLS))


@pytest.fixture
def runner(stand_in: Target) -> Iterator[Runner]:
    with Runner(RunnerOptions.for_device(stand_in.driver)) as started:
        yield started


def task_of(text: str, folder: Path, target: Target) -> Task:
    (folder / "model.mlir").write_text(text)
    (task,) = extract(folder / "model.mlir", target).tasks
    return task


def compiled(task: Task) -> Program:
    with CompilerPool(task.flags, workers=1, chain_length=DEVICE_LENGTH) as pool:
        ((_, result),) = pool.compile(task.source, [None], task.constants)
    assert result.vmfb is not None, result.failure
    return program_of_task(task, result.vmfb)


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(("text", "chained"), [(SHORT.text, True), (LONG.text, False)])
def test_short_dispatches_are_timed_with_their_chain(
    text: str, chained: bool, stand_in: Target, tmp_path: Path
) -> None:
    task = task_of(text, tmp_path, stand_in)
    assert task.dispatch is not None
    bench, program = CallsBench(CallsSetup(LOCAL_SYNC)), compiled(task)
    prepared = bench.prepare(Prepare(program, checks_for_dispatch(task.dispatch)))
    assert prepared.error is None
    assert (bench._callee(BASELINE).chain is not None) is chained
    bench.load(1, program)
    assert (bench._callee(1).chain is not None) is chained, "the same code is timed in the same way"
    assert (prepared.call_s < CHAINED_S) is chained


def test_right_programs_are_timed_and_wrong_ones_are_not(runner: Runner, stand_in: Target, tmp_path: Path) -> None:
    task = task_of(SHORT.text, tmp_path, stand_in)
    assert task.dispatch is not None
    right = compiled(task)
    wrong = compiled(task_of(SHORT.text.replace("0.0 : f32", "1.0 : f32"), tmp_path, stand_in))
    assert wrong.vmfb != right.vmfb
    timing, (own, other) = runner.measure(right, [right, wrong], checks_for_dispatch(task.dispatch))
    assert own.timing is not None
    assert own.verdict is Verdict.RIGHT
    assert timing.median_s > 0
    assert other.failure is not None
    assert other.failure.kind is FailureClass.WRONG_RESULT


def test_after_an_error_a_device_is_opened_anew(runner: Runner, stand_in: Target, tmp_path: Path) -> None:
    """A CUDA kernel that reads where it must not ends the context of its process, and with it all that follow there."""
    task = task_of(SHORT.text, tmp_path, stand_in)
    assert task.dispatch is not None
    right = compiled(task)
    broken = replace(right, vmfb=right.vmfb[:64])
    _, (failed, own) = runner.measure(right, [broken, right], checks_for_dispatch(task.dispatch))
    assert failed.failure is not None
    assert failed.failure.kind is FailureClass.RUN_ERROR
    assert own.failure is None
    assert runner._client.generation > 1


@pytest.mark.landing
@pytest.mark.usefixtures("short_sessions")
def test_a_model_is_tuned_on_such_a_device(stand_in: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(TARGETS, "llvm-cpu", TargetKind(lambda *_: stand_in, {DEFAULT: ()}, llvm_cpu.facts))
    (tmp_path / "model.mlir").write_text(matmul(33, 40, 48).text)
    result = tune(tmp_path / "model.mlir", tmp_path / "tuned", options=TuneOptions(trials=3))
    assert result.program.verdict is Verdict.RIGHT
    assert result.evaluated == 3
    assert result.tunable_share is None, "IREE records no dispatches of this device, so no part of its time is known"
