"""The runner on a HAL device: checked there, timed by its timestamps. Fakes stand in for IREE's programs in places."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from folders import TESTS
from iree.compiler.tools import compile_str
from measured_programs import RULE, SOURCES, SQUARE, failure_of, only
from vulkan import require_vulkan

from mlir_sched.errors import FailureClass
from mlir_sched.payload import TensorSpec
from mlir_sched.runner import (
    BaselineError,
    Program,
    RacingOptions,
    Runner,
    RunnerOptions,
    SampleOptions,
    TimeoutOptions,
)
from mlir_sched.runner.benchmark_module import ProgramFiles, arguments_of, find_tools, write_elements
from mlir_sched.runner.inputs import make_inputs
from mlir_sched.runner.protocol import DeviceSetup, RequestFailed
from mlir_sched.runner.rules import rule_for_model
from mlir_sched.runner.verify import DTYPES, Check, InputKind, poison_bits
from mlir_sched.runner.worker.device import RemoteDevice
from mlir_sched.runner.worker.dispatch_events import DispatchClock, durations_of, seconds_per_call
from mlir_sched.runner.worker.spinning_threads import NICENESS, Threads, run_without_spinning

TARGET = ("--iree-hal-target-device=vulkan", "--iree-vulkan-target=llvmpipe")
CPU = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")
FAST = replace(
    RunnerOptions.for_device("vulkan"),
    samples=SampleOptions(least_s=0.06, min_calls=4, max_calls=4, overhead_s=0.3),
    racing=RacingOptions(budget_s=0.1, min_pairs=1, patience_s=10.0, precision=0.02, slow_factor=1.5),
)

TWO_DISPATCHES = """
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.matmul ins(%x, %x : tensor<64x64xf32>, tensor<64x64xf32>)
      outs(%filled : tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = linalg.matmul ins(%y, %x : tensor<64x64xf32>, tensor<64x64xf32>)
      outs(%filled : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %z : tensor<64x64xf32>
}
"""


@pytest.fixture(scope="session")
def matmul() -> Callable[..., Program]:
    """Return a function from a source's name to its program; each is compiled once."""
    known: dict[tuple[str, ...], Program] = {}

    def compile_program(name: str, flags: tuple[str, ...] = TARGET) -> Program:
        if (name, *flags) not in known:
            vmfb = compile_str((SOURCES / f"{name}.mlir").read_text(), extra_args=flags)
            known[name, *flags] = Program(vmfb, "task", (SQUARE, SQUARE), (SQUARE,), True)
        return known[name, *flags]

    return compile_program


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    require_vulkan()
    with Runner(FAST) as made:
        yield made


def test_right_program_is_timed_by_the_device(runner: Runner, matmul: Callable[..., Program]) -> None:
    start = time.perf_counter()
    result = only(runner, matmul("right"), matmul("right"))
    assert result.failure is None
    assert result.timing is not None
    assert 0 < result.timing.low_s <= result.timing.median_s <= result.timing.high_s
    assert result.timing.median_s < 0.01 * (time.perf_counter() - start)
    assert result.timing.samples >= 1


@pytest.mark.parametrize(
    ("name", "explanation"),
    [
        ("one_wrong_element", "1 of 4096 elements differ where equality is due, first at [17, 33]"),
        ("right_for_zeros", "elements differ where equality is due"),
        ("skipped_tail", "256 of 4096 elements never written"),
        ("overwritten_input", "input 0 was overwritten"),
        ("stale_state", "elements are too far off"),
    ],
)
def test_wrong_program_is_rejected_with_the_reason(
    runner: Runner, matmul: Callable[..., Program], name: str, explanation: str
) -> None:
    failure = failure_of(only(runner, matmul("right"), matmul(name)))
    assert failure.kind == FailureClass.WRONG_RESULT
    assert explanation in failure.message
    assert only(runner, matmul("right"), matmul("right")).failure is None


def test_dispatches_of_a_whole_program_add_up(runner: Runner) -> None:
    vmfb = compile_str(TWO_DISPATCHES, extra_args=TARGET)
    model = Program(vmfb, "main", (SQUARE,), (SQUARE,), False)
    assert only(runner, model, model, rule_for_model((SQUARE,))).failure is None
    with tempfile.TemporaryDirectory() as folder:
        clock, files = on_vulkan(Path(folder), model)
        clock.seconds(files, 4)
        listing = subprocess.run(
            [find_tools()[1], "dispatch", "--format=jsonl", "--dispatch_events", f"{folder}/record"],
            capture_output=True,
            check=True,
        ).stdout
    assert durations_of(listing, 5).shape == (5, 2)


def test_program_for_another_device_is_a_failure_and_others_go_on(
    runner: Runner, matmul: Callable[..., Program]
) -> None:
    programs = [matmul("right", CPU), matmul("right")]
    _, (foreign, own) = runner.measure(matmul("right"), programs, RULE)
    assert failure_of(foreign).kind == FailureClass.RUN_ERROR
    assert "llvm-cpu" in failure_of(foreign).message
    assert own.failure is None


def test_device_is_closed_after_a_batch(runner: Runner, matmul: Callable[..., Program]) -> None:
    only(runner, matmul("right"), matmul("right"))
    process = psutil.Process(runner._client.pid)
    used = sum(process.cpu_times()[:2])
    time.sleep(0.5)
    assert sum(process.cpu_times()[:2]) - used < 0.1


def test_files_go_with_the_process(matmul: Callable[..., Program]) -> None:
    require_vulkan()
    with Runner(FAST) as runner:
        runner.measure(matmul("right"), [], RULE)
        folder = runner._client.folder
        assert folder is not None
        assert any(folder.iterdir())
    assert not folder.exists()


def test_device_is_named_by_its_uri(matmul: Callable[..., Program]) -> None:
    require_vulkan()
    import iree.runtime as rt

    path = rt.get_driver("vulkan").query_available_devices()[0]["path"]
    with Runner(replace(FAST, driver=f"vulkan://{path}")) as runner:
        assert only(runner, matmul("right"), matmul("right")).failure is None


def test_device_that_does_not_exist_is_an_error_of_the_baseline(matmul: Callable[..., Program]) -> None:
    options = replace(FAST, driver="vulkan://GPU-00000000000000000000000000000000")
    with Runner(options) as runner, pytest.raises(BaselineError):
        runner.measure(matmul("right"), [], RULE)


def test_noise_is_refused(runner: Runner) -> None:
    with pytest.raises(ValueError, match="vulkan"):
        runner.noise(0.1)


@pytest.mark.parametrize("element_type", sorted(DTYPES))
def test_device_memory_holds_what_is_written(element_type: str) -> None:
    require_vulkan()
    script = "import sys; from test_device_timing import write_and_read; write_and_read(sys.argv[1])"
    here, environment = Path(__file__).parent, os.environ | {"PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", script, element_type]
    subprocess.run(command, cwd=here, env=environment, check=True, timeout=60)


def write_and_read(element_type: str) -> None:
    """Do so on a device; ends the process, which must not end with a device."""
    import iree.runtime as rt

    spec = TensorSpec((3, 5), element_type)
    first, second = (make_inputs((spec,), Check(InputKind.EXACT, seed))[0] for seed in (1, 2))
    device = RemoteDevice(rt.VmInstance(), "vulkan")
    view = device.buffer(first, spec)
    right = np.array_equal(device.read(view, spec), first)
    device.write(view, spec, second)
    right &= np.array_equal(device.read(view, spec), second)
    device.write(view, spec, poison_bits(spec))
    right &= bool((device.read(view, spec).view(poison_bits(spec).dtype) == poison_bits(spec)).all())
    os._exit(0 if right else 1)


def event(number: int, key: str = "a", duration_ns: int = 1000, **changes: Any) -> str:
    row = {"type": "dispatch_event", "event_id": number, "key": key, "duration_ns": duration_ns, "valid": True}
    return json.dumps(row | changes)


def listing(*lines: str) -> bytes:
    return "\n".join((*lines, json.dumps({"type": "dispatch_summary"}))).encode()


def test_events_are_durations_by_call_and_dispatch_in_order() -> None:
    rows = [event(4, "b", 40), event(1, "a", 10), event(2, "b", 20), event(3, "a", 30)]
    assert durations_of(listing(*rows), 2) == pytest.approx(np.array([[10e-9, 20e-9], [30e-9, 40e-9]]))


def test_time_of_a_call_is_the_low_percentile_of_each_dispatch_without_the_first_call() -> None:
    durations = np.ones((12, 2))
    durations[0] = 0.001
    durations[1:, 1] = np.arange(10, 21)
    assert seconds_per_call(durations) == pytest.approx(1 + 11)


@pytest.mark.parametrize(
    ("rows", "explanation"),
    [
        ([], "no timestamps"),
        ([event(1), event(2), event(3)], "2 equal calls made 3 dispatches"),
        ([event(1), event(2, valid=False)], "not valid"),
        ([event(1), event(2, duration_ns=0)], "not valid"),
        ([event(1, "a"), event(2, "b")], "equal calls made different dispatches: a, b"),
    ],
)
def test_unusable_events_are_a_run_error(rows: list[str], explanation: str) -> None:
    with pytest.raises(RequestFailed, match=explanation) as failed:
        durations_of(listing(*rows), 2)
    assert failed.value.failure.kind == FailureClass.RUN_ERROR


def on_vulkan(folder: Path, program: Program) -> tuple[DispatchClock, ProgramFiles]:
    (folder / "module").write_bytes(program.vmfb)
    arrays = make_inputs(arguments_of(program), Check(InputKind.RANDOM, 1))
    files = tuple(write_elements(folder / f"argument{i}", array) for i, array in enumerate(arrays))
    clock = DispatchClock(DeviceSetup("vulkan", *find_tools()), folder / "record")
    return clock, ProgramFiles(folder / "module", program, files)


def fake(folder: Path, body: str) -> str:
    """Return the path of a program that stands for one of IREE's."""
    path = folder / "fake"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("body", "kind", "explanation"),
    [
        ("kill -SEGV $$", FailureClass.RUN_CRASH, "SIGSEGV"),
        ("echo out of memory >&2; exit 1", FailureClass.RUN_ERROR, "exit code 1; it said: out of memory"),
    ],
)
def test_failing_benchmark_program_is_a_failure(
    tmp_path: Path, body: str, kind: FailureClass, explanation: str
) -> None:
    clock = DispatchClock(DeviceSetup("vulkan", fake(tmp_path, body), "profile"), tmp_path / "record")
    with pytest.raises(RequestFailed) as failed:
        clock.sample(ProgramFiles(tmp_path / "module", Program(b"", "task", (), (), True), ()), 3)
    assert failed.value.failure.kind == kind
    assert explanation in failed.value.failure.message


@pytest.mark.parametrize(
    ("times", "sample", "alone", "used"),
    [
        ([2.0, 1.0, 1.1], 1.0, True, 3),  # nothing is known of it
        ([1.0, 1.0, 1.0, 2.0, 1.1], 1.1, True, 2),
        ([1.0, 1.0, 1.0, 2.0, 1.4, 1.5], 1.4, False, 3),
    ],
)
def test_sample_is_the_fastest_of_as_many_processes_as_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: list[float], sample: float, alone: bool, used: int
) -> None:
    clock = DispatchClock(DeviceSetup("vulkan", "", ""), tmp_path)
    files = ProgramFiles(tmp_path, Program(b"", "task", (), (), True), ())
    left = iter(times)
    monkeypatch.setattr(clock, "_run", lambda tool, flags: b"")
    monkeypatch.setattr("mlir_sched.runner.worker.dispatch_events.durations_of", lambda text, calls: None)
    monkeypatch.setattr("mlir_sched.runner.worker.dispatch_events.seconds_per_call", lambda durations: next(left))
    for _ in range(len(times) - used):
        clock.seconds(files, 1)
    assert clock.sample(files, 1) == (sample, alone)
    assert not list(left)


def hanging_when_timed(folder: Path, counter: Path, after: int) -> str:
    """Return a benchmark program that hangs from so many runs on."""
    real, _ = find_tools()
    body = f'echo >> {counter}; [ $(wc -l < {counter}) -gt {after} ] && exec sleep 1000; exec {real} "$@"'
    return fake(folder, body)


def test_benchmark_program_that_hangs_is_a_timeout_and_is_killed(
    tmp_path: Path, matmul: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_vulkan()
    tools = hanging_when_timed(tmp_path, tmp_path / "runs", 1), find_tools()[1]
    monkeypatch.setattr("mlir_sched.runner.runner.find_tools", lambda: tools)
    monkeypatch.setenv("MLIR_SCHED_TEST", str(tmp_path))
    samples, timeouts = replace(FAST.samples, overhead_s=0.02), TimeoutOptions(call_s=1.0, factor=1.0)
    options = replace(FAST, samples=samples, timeouts=timeouts)
    with Runner(options) as runner, pytest.raises(BaselineError, match="stopped after"):
        runner.measure(matmul("right"), [], RULE)
    assert not sleeping(tmp_path)


def sleeping(folder: Path) -> list[psutil.Process]:
    """Return the processes that hang in place of a benchmark program; their environment names the folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cmdline() == ["sleep", "1000"] and process.environ().get("MLIR_SCHED_TEST") == str(folder):
                found.append(process)
        except psutil.Error:
            continue
    return found


ORPHAN = """
import sys, pathlib
from mlir_sched.runner import *
from mlir_sched.runner import runner as module
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.verify import *
module.find_tools = lambda: tuple(sys.argv[2:4])
square = TensorSpec((64, 64), "f32")
right = Program(pathlib.Path(sys.argv[1]).read_bytes(), "task", (square,) * 2, (square,), True)
runner = Runner(RunnerOptions.for_device("vulkan"))
runner._client.start()
print(runner._client.folder, flush=True)
runner.measure(right, [], Rule((Check(InputKind.EXACT, 1),)))
"""


def test_benchmark_program_and_files_go_with_a_killed_parent(tmp_path: Path, matmul: Callable[..., Program]) -> None:
    require_vulkan()
    (tmp_path / "right").write_bytes(matmul("right").vmfb)
    tools = hanging_when_timed(tmp_path, tmp_path / "runs", 1), find_tools()[1]
    with subprocess.Popen(
        [sys.executable, "-c", ORPHAN, str(tmp_path / "right"), *tools],
        stdout=subprocess.PIPE,
        env=os.environ | {"MLIR_SCHED_TEST": str(tmp_path)},
    ) as parent:
        assert parent.stdout is not None
        folder = Path(parent.stdout.readline().decode().strip())
        wait_until(lambda: bool(sleeping(tmp_path)))
        parent.kill()
    wait_until(lambda: not sleeping(tmp_path) and not folder.exists())


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


LOOP = "import threading, time; threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start(); time.sleep(60)"
WORK = """
import threading, time
def work():
    while True:
        time.sleep(0.01)
        sum(range(50000))
threading.Thread(target=work).start()
time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not tell who waits for a core")
@pytest.mark.parametrize(("program", "expected"), [(LOOP, True), (WORK, False)])
def test_thread_that_spins_from_the_start_is_demoted(program: str, expected: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        threads = Threads(process.pid)
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            threads.demote_spinning()
            time.sleep(0.005)
        others = [t.id for t in psutil.Process(process.pid).threads() if t.id != process.pid]
        demoted = [os.getpriority(os.PRIO_PROCESS, thread) == NICENESS for thread in others]
        process.kill()
    assert demoted == [expected]


def test_output_and_exit_code_of_a_program_are_kept() -> None:
    ended = run_without_spinning(["/bin/sh", "-c", "sleep 0.02; echo said; echo wrong >&2; exit 3"])
    assert (ended.code, ended.output, ended.errors) == (3, b"said\n", b"wrong\n")
