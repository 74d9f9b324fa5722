"""SIGTERM ends a run as Ctrl-C does, whatever it is doing, and leaves neither processes nor temporary folders."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from running_command import RunningCommand, start

from mlir_sched.compiler.flags import write_response_file
from mlir_sched.targets.llvm_cpu import FLAGS

pytestmark = pytest.mark.alone

MODEL = """
func.func @main(%x: tensor<64x128xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %y = linalg.reduce { arith.addf } ins(%x : tensor<64x128xf32>) outs(%filled : tensor<64xf32>) dimensions = [1]
  return %y : tensor<64xf32>
}
"""
TUNE = ("tune", "model.mlir", "--minutes", "10", "--threads", "1", "--replace")


def terminated(run: RunningCommand) -> None:
    """Terminate a run, and require that it ends at once and that nothing of it is left."""
    run.children()
    run.process.terminate()
    run.process.communicate(timeout=10)
    assert run.process.returncode == 130
    assert not run.says("Traceback")
    run.assert_nothing_is_left()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a model, and one that is tuned by flags alone."""
    (tmp_path / "model.mlir").write_text(MODEL)
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "flags.txt").write_text(write_response_file(FLAGS))
    return tmp_path


@pytest.mark.landing
def test_the_first_signal_ends_the_search_and_the_second_one_the_run(folder: Path) -> None:
    run = start(folder, *TUNE)
    run.wait_for(lambda run: run.says(" trials, ") and run.runs("compiler.worker.main"))
    run.process.terminate()
    run.wait_for(lambda run: run.says("emitting and measuring") and run.runs("runner.worker"))
    terminated(run)
    assert (folder / "tuned" / "flags.txt").read_text() == write_response_file(FLAGS), "the earlier result is kept"
    assert list((folder / "tuned").glob("*.mlir")) == []


MOMENTS: dict[str, Callable[[RunningCommand], bool]] = {
    "extraction": lambda run: run.says("compiling and timing") and run.runs("compiler.worker.main"),
    "iree-compile": lambda run: run.runs("iree-compile"),
    "timing": lambda run: run.runs("runner.worker"),
}


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_terminated_run_leaves_nothing(folder: Path, moment: str) -> None:
    run = start(folder, *TUNE)
    run.wait_for(MOMENTS[moment])
    terminated(run)
    assert run.says("interrupted; what was measured is in the record store")


@pytest.mark.landing
def test_a_replay_terminated_again_and_again_leaves_nothing(folder: Path) -> None:
    run = start(folder, "replay", "tuned", "model.mlir")
    run.wait_for(lambda run: run.runs("runner.worker"))
    run.children()
    run.process.terminate()
    time.sleep(0.1)
    run.process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    terminated(run)


@pytest.mark.landing
def test_nothing_stays_of_a_killed_run_when_the_next_one_is_terminated_with_all_its_processes(
    folder: Path,
) -> None:
    """A service manager tells every process of a service to end."""
    killed = start(folder, *TUNE)
    killed.wait_for(MOMENTS["iree-compile"])
    killed.children()
    killed.process.kill()
    killed.process.communicate()
    killed.assert_no_process_is_left()
    assert list(killed.temporary.iterdir())
    following = start(folder, *TUNE)
    following.wait_for(MOMENTS["iree-compile"])
    following.children()
    for process in following.seen:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    assert following.process.poll() is None
    terminated(following)
