"""The runner on a HAL device: checked there, timed by its timestamps. Fakes stand in for IREE's programs in places."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from folders import SUPPORT
from iree.compiler.tools import compile_str
from measured_programs import CHECKS, SOURCES, SQUARE, failure_of, fake_program, only
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
from mlir_sched.runner.checks.check import Check, InputKind
from mlir_sched.runner.checks.inputs import make_inputs
from mlir_sched.runner.checks.numeric_checks import checks_for_model
from mlir_sched.runner.protocol import EventsSetup
from mlir_sched.runner.worker.comparison import poison_bits
from mlir_sched.runner.worker.device import LocalDevice, RemoteDevice
from mlir_sched.runner.worker.dispatch_events import DispatchClock, durations_of
from mlir_sched.targets.clock import EVENTS
from mlir_sched.targets.target import Driver
from mlir_sched.tensors.element_types import DTYPES

pytestmark = pytest.mark.alone

TARGET = ("--iree-hal-target-device=vulkan", "--iree-vulkan-target=llvmpipe")
CPU = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")
FAST = replace(
    RunnerOptions.for_device(Driver("vulkan", EVENTS)),
    samples=SampleOptions(least_s=0.06, min_calls=4, max_calls=4, overhead_s=0.3),
    racing=RacingOptions(budget_s=0.1, min_pairs=1, patience_s=10.0, precision=0.02),
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


@pytest.mark.sweep("landing")
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


@pytest.mark.landing
def test_dispatches_of_a_whole_program_add_up(runner: Runner) -> None:
    vmfb = compile_str(TWO_DISPATCHES, extra_args=TARGET)
    model = Program(vmfb, "main", (SQUARE,), (SQUARE,), False)
    assert only(runner, model, model, checks_for_model((SQUARE,))).failure is None
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
    _, (foreign, own) = runner.measure(matmul("right"), programs, CHECKS)
    assert failure_of(foreign).kind == FailureClass.RUN_ERROR
    assert "llvm-cpu" in failure_of(foreign).message
    assert own.failure is None


@pytest.mark.landing
def test_device_is_closed_after_a_batch(runner: Runner, matmul: Callable[..., Program]) -> None:
    only(runner, matmul("right"), matmul("right"))
    process = psutil.Process(runner._client.pid)
    used = sum(process.cpu_times()[:2])
    time.sleep(0.5)
    assert sum(process.cpu_times()[:2]) - used < 0.1


def test_files_go_with_the_process(matmul: Callable[..., Program]) -> None:
    require_vulkan()
    with Runner(FAST) as runner:
        runner.measure(matmul("right"), [], CHECKS)
        folder = runner._client.folder
        assert folder is not None
        assert any(folder.iterdir())
    assert not folder.exists()


def test_device_is_named_by_its_uri(matmul: Callable[..., Program]) -> None:
    require_vulkan()
    import iree.runtime as rt

    path = rt.get_driver("vulkan").query_available_devices()[0]["path"]
    with Runner(replace(FAST, driver=Driver(f"vulkan://{path}", EVENTS))) as runner:
        assert only(runner, matmul("right"), matmul("right")).failure is None


def test_device_that_does_not_exist_is_an_error_of_the_baseline(matmul: Callable[..., Program]) -> None:
    options = replace(FAST, driver=Driver("vulkan://GPU-00000000000000000000000000000000", EVENTS))
    with Runner(options) as runner, pytest.raises(BaselineError):
        runner.measure(matmul("right"), [], CHECKS)


def test_noise_is_refused(runner: Runner) -> None:
    with pytest.raises(ValueError, match="vulkan"):
        runner.noise(0.1)


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("driver", ["local-sync", "vulkan"])
@pytest.mark.parametrize("element_type", sorted(DTYPES))
def test_device_memory_holds_what_is_written(element_type: str, driver: str) -> None:
    if driver == "vulkan":
        require_vulkan()
    script = "import sys; from test_device_timing import write_and_read; write_and_read(*sys.argv[1:])"
    here, environment = Path(__file__).parent, os.environ | {"PYTHONPATH": str(SUPPORT)}
    command = [sys.executable, "-c", script, element_type, driver]
    subprocess.run(command, cwd=here, env=environment, check=True, timeout=60)


def write_and_read(element_type: str, driver: str) -> None:
    """Do so on a device; ends the process, which must not end with a device."""
    import iree.runtime as rt

    spec = TensorSpec((3, 5), element_type)
    first, second = (make_inputs((spec,), Check(InputKind.EXACT, seed))[0] for seed in (1, 2))
    kind = RemoteDevice if driver == "vulkan" else LocalDevice
    device = kind(rt.VmInstance(), driver)
    view = device.buffer(first, spec)
    right = np.array_equal(device.read(view, spec), first)
    device.write(view, spec, second)
    right &= np.array_equal(device.read(view, spec), second)
    kept = device.read(view, spec, keep=True)
    device.write(view, spec, poison_bits(spec))
    right &= bool((device.read(view, spec).view(poison_bits(spec).dtype) == poison_bits(spec)).all())
    right &= np.array_equal(kept, second)
    larger = TensorSpec((70, 5), element_type)  # than the staging buffers are by now
    values = make_inputs((larger,), Check(InputKind.EXACT, 3))[0]
    right &= np.array_equal(device.read(device.buffer(values, larger), larger), values)
    right &= bool((device.read(view, spec).view(poison_bits(spec).dtype) == poison_bits(spec)).all())
    right &= device.mend_guard(view, spec) == 0
    behind = TensorSpec((spec.elements + 16,), element_type)  # 16 of the narrowest type are 4 bytes
    device.write(view, behind, poison_bits(spec) + poison_bits(spec).dtype.type(1))
    right &= device.mend_guard(view, spec) >= 2
    right &= device.mend_guard(view, spec) == 0
    scalar = TensorSpec((), element_type)
    value = device.buffer(first[0, 0], scalar)
    right &= bool(device.read(value, scalar) == first[0, 0]) and device.mend_guard(value, scalar) == 0
    os._exit(0 if right else 1)


def on_vulkan(folder: Path, program: Program) -> tuple[DispatchClock, ProgramFiles]:
    (folder / "module").write_bytes(program.vmfb)
    specs = arguments_of(program)
    pairs = enumerate(zip(make_inputs(specs, Check(InputKind.RANDOM, 1)), specs, strict=True))
    files = tuple(write_elements(folder / f"argument{i}", array, spec) for i, (array, spec) in pairs)
    clock = DispatchClock(EventsSetup("vulkan", *find_tools()), folder / "record")
    return clock, ProgramFiles(folder / "module", program, files)


def hanging_when_timed(folder: Path, counter: Path, after: int) -> str:
    """Return a benchmark program that hangs from so many runs on."""
    real, _ = find_tools()
    body = f'echo >> {counter}; [ $(wc -l < {counter}) -gt {after} ] && exec sleep 1000; exec {real} "$@"'
    return fake_program(folder, body)


@pytest.mark.landing
def test_benchmark_program_that_hangs_is_a_timeout_and_is_killed(
    tmp_path: Path, matmul: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_vulkan()
    tools = hanging_when_timed(tmp_path, tmp_path / "runs", 1), find_tools()[1]
    monkeypatch.setattr("mlir_sched.runner.client.find_tools", lambda: tools)
    monkeypatch.setenv("MLIR_SCHED_TEST", str(tmp_path))
    samples, timeouts = replace(FAST.samples, overhead_s=0.02), TimeoutOptions(call_s=1.0, factor=1.0)
    options = replace(FAST, samples=samples, timeouts=timeouts)
    with Runner(options) as runner, pytest.raises(BaselineError, match="stopped after"):
        runner.measure(matmul("right"), [], CHECKS)
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
from mlir_sched.runner import client as module
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import *
from mlir_sched.targets.clock import EVENTS
from mlir_sched.targets.target import Driver
module.find_tools = lambda: tuple(sys.argv[2:4])
square = TensorSpec((64, 64), "f32")
right = Program(pathlib.Path(sys.argv[1]).read_bytes(), "task", (square,) * 2, (square,), True)
runner = Runner(RunnerOptions.for_device(Driver("vulkan", EVENTS)))
runner._client.start()
print(runner._client.folder, flush=True)
runner.measure(right, [], (Check(InputKind.EXACT, 1),))
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
