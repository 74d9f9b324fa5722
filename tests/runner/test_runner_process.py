"""The runner's process: programs that hang, crash, kill or starve it cost only themselves, and it outlives nobody."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from measured_programs import CHECKS, FAST, SQUARE, VECTOR, Compiled, failure_of, only

from mlir_sched.errors import Failure, FailureClass
from mlir_sched.processes import child
from mlir_sched.runner import Runner, RunnerOptions, TimeoutOptions, client
from mlir_sched.runner.checking import Part
from mlir_sched.runner.checks.numeric_checks import checks_for_model
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import RequestFailed

pytestmark = pytest.mark.alone


def pid_of(runner: Runner) -> int:
    assert runner._client.pid is not None
    return runner._client.pid


def test_programs_that_hang_or_crash_cost_only_themselves(runner: Runner, matmul: Compiled) -> None:
    names = ["right", "endless_loop", "right", "out_of_bounds", "right"]
    baseline, results = runner.measure(matmul("right"), [matmul(name) for name in names], CHECKS)
    kinds = [result.failure.kind if result.failure else None for result in results]
    assert kinds == [None, FailureClass.RUN_TIMEOUT, None, FailureClass.RUN_CRASH, None]
    assert "SIGSEGV" in failure_of(results[3]).message
    assert baseline.samples >= FAST.racing.min_pairs
    assert baseline.ratio == 1.0


def test_process_killed_while_a_program_runs_is_a_crash_of_that_program(matmul: Compiled) -> None:
    with Runner(RunnerOptions(timeouts=TimeoutOptions(call_s=60.0))) as runner:
        runner.measure(matmul("right"), [], CHECKS)
        killer = threading.Timer(0.5, os.kill, (pid_of(runner), signal.SIGKILL))
        killer.start()
        failure = failure_of(only(runner, matmul("right"), matmul("endless_loop")))
    assert failure.kind == FailureClass.RUN_CRASH
    assert "SIGKILL" in failure.message


def test_innocent_program_is_tried_again_when_another_damaged_the_process(
    runner: Runner, matmul: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(runner, matmul("right"), matmul("right"))
    check = runner._checking._check

    def check_in_damaged_process(handle: int, program: Program, part: Part) -> Failure | None:
        monkeypatch.setattr(runner._checking, "_check", check)
        os.kill(pid_of(runner), signal.SIGSEGV)
        return check(handle, program, part)

    monkeypatch.setattr(runner._checking, "_check", check_in_damaged_process)
    assert only(runner, matmul("right"), matmul("right")).failure is None


def test_process_killed_between_batches_goes_unnoticed(runner: Runner, matmul: Compiled) -> None:
    only(runner, matmul("right"), matmul("right"))
    os.kill(pid_of(runner), signal.SIGKILL)
    assert only(runner, matmul("right"), matmul("right")).failure is None


def test_program_that_does_not_load_is_a_run_error(runner: Runner, matmul: Compiled) -> None:
    broken = Program(b"not a module at all", "task", (SQUARE, SQUARE), (SQUARE,), True)
    missing = Program(matmul("right").vmfb, "no_such_entry", (SQUARE, SQUARE), (SQUARE,), True)
    for program in (broken, missing):
        assert failure_of(only(runner, matmul("right"), program)).kind == FailureClass.RUN_ERROR


def test_a_program_that_needs_too_much_memory_is_stopped(model: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "child_memory_bytes", lambda: 600 << 20)
    with Runner(replace(FAST, timeouts=TimeoutOptions(call_s=60.0))) as runner:
        failure = failure_of(only(runner, model("model_scale"), model("hungry"), checks_for_model((VECTOR,))))
        assert failure == Failure(FailureClass.RUN_MEMORY, "stopped: it used more than 600 MiB of memory")
        assert only(runner, model("model_scale"), model("model_scale"), checks_for_model((VECTOR,))).failure is None


def test_a_mistake_of_ours_is_told_from_a_programs_failure(runner: Runner) -> None:
    with pytest.raises(RequestFailed) as failed:
        runner._client.ask("no request", 10)
    assert failed.value.failure.kind == FailureClass.INTERNAL_ERROR
    assert failed.value.failure.message.endswith("TypeError: unknown request str\n")


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("bytes([5])", "stopped after 1 s"),
        ("(90).to_bytes(8, 'little') + b'half'", "stopped after 1 s"),
        ("(4).to_bytes(8, 'little') + b'junk'", "the runner process is damaged"),
    ],
)
def test_a_process_that_does_not_finish_its_message_is_given_up(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, said: str, message: str
) -> None:
    program = f"import os, sys, time; os.write(int(sys.argv[1]), {said}); time.sleep(600)"
    monkeypatch.setattr(child, "python_command", lambda _, *rest, python: [python, "-c", program, *rest])
    monkeypatch.setattr(client, "START_TIMEOUT_S", 1.0)
    broken = client.RunnerClient(runner._client._setup)
    with pytest.raises(client.RunnerStartError, match=message):
        broken.start()
    assert broken.pid is None


ORPHAN = """
import sys, pathlib, threading
from mlir_sched.runner import *
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import *
square = TensorSpec((64, 64), "f32")
right, hang = (Program(pathlib.Path(p).read_bytes(), "task", (square,) * 2, (square,), True) for p in sys.argv[1:])
runner = Runner(RunnerOptions(timeouts=TimeoutOptions(call_s=1e3)))
checks = (Check(InputKind.EXACT, 1),)
runner.measure(right, [], checks)
print(runner._client.pid, flush=True)
runner.measure(right, [hang], checks)
"""


def test_process_dies_with_a_killed_parent_even_while_a_program_hangs(
    tmp_path: Path, compiled: Callable[[str], bytes]
) -> None:
    paths = [tmp_path / name for name in ("right", "endless_loop")]
    for path in paths:
        path.write_bytes(compiled(path.name))
    with subprocess.Popen([sys.executable, "-c", ORPHAN, *map(str, paths)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        used = child.cpu_times().user
        deadline = time.monotonic() + 30
        while child.cpu_times().user < used + 0.3 and time.monotonic() < deadline:
            time.sleep(0.02)  # until the endless loop is under way
        parent.kill()
    psutil.wait_procs([child], timeout=30)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


@pytest.mark.landing
def test_memory_stays_bounded_over_many_candidates(runner: Runner, matmul: Compiled) -> None:
    def resident() -> float:
        return float(psutil.Process(runner._client.pid).memory_info().rss)

    program, wrong = matmul("right"), matmul("one_wrong_element")
    for _ in range(3):
        runner.measure(program, [wrong] * 50, CHECKS)
    before = resident()
    for _ in range(10):
        runner.measure(program, [wrong] * 50, CHECKS)
    assert resident() - before < 4 << 20
