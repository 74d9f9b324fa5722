"""An NVIDIA GPU end to end: tuned on it, emitted, compiled plainly, replayed; and what random candidates compute.

``pytest -m cuda`` runs these tests alone. They are skipped where there is no GPU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from applied_sequences import applied_sequences
from command_line import run
from contraction_payloads import matmul
from nvidia_gpu import require_cuda
from payloads import PAYLOADS

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import IllegalTraceError
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import Target
from mlir_sched.testing import check_candidates, tasks_of
from mlir_sched.trace import Trace

TRIALS, ATTEMPTS, CANDIDATES = 8, 50, 3

pytestmark = [pytest.mark.landing, pytest.mark.timeout(900), pytest.mark.alone, pytest.mark.cuda]


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> None:
    require_cuda()


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model.mlir tuned on the GPU into tuned/."""
    require_cuda()
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "model.mlir").write_text(matmul(200, 200, 200).text)
    ended = run(folder, "tune", "model.mlir", "--target", "cuda", "--trials", str(TRIALS), "--json")
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    require_cuda()
    with Runner(RunnerOptions.for_device(gpu().driver)) as started:
        yield started


@cache
def gpu() -> Target:
    return detect_target("cuda", None)


def test_what_is_tuned_is_right_and_not_slower(tuned: Path) -> None:
    summary = json.loads((tuned / "tuned" / "summary.json").read_text())
    assert summary["target"] == "cuda"
    assert summary["trials"] == TRIALS
    assert summary["program"]["verdict"] == "right"
    assert summary["program"]["tuned"]["ratio_high"] >= 1.0


def test_plain_iree_compile_applies_what_was_emitted(tuned: Path) -> None:
    summary = json.loads((tuned / "tuned" / "summary.json").read_text())
    scripts = {dispatch["symbol"]: 1 for dispatch in summary["dispatches"] if dispatch["sketch"]}
    assert applied_sequences(tuned / "model.mlir", (f"@{tuned / 'tuned' / 'flags.txt'}",), None) == scripts


def test_the_library_replays(tuned: Path) -> None:
    ended = run(tuned, "replay", "tuned", "model.mlir", "--json")
    assert (ended.returncode, json.loads(ended.stdout)["problems"]) == (0, [])


@pytest.mark.parametrize("name", PAYLOADS)
def test_random_candidates_of_every_sketch_are_right(name: str, runner: Runner) -> None:
    target, payload = gpu(), PAYLOADS[name]
    for task in tasks_of(payload.text, target, payload.flags):
        assert task.dispatch is not None
        space = DesignSpace(Space.default(target), task.dispatch, target)
        traces = [trace for sketch in space.sketches for trace in _draws(space, sketch)]
        with CompilerPool(task.flags) as pool:
            failures = check_candidates(task, space, traces, pool, runner)
        assert not [(trace.values, failure) for trace, failure in zip(traces, failures, strict=True) if failure]


def _draws(space: DesignSpace, sketch: str) -> list[Trace]:
    """Return distinct legal draws."""
    rng, drawn = np.random.default_rng(0), dict[str, Trace]()
    for _ in range(ATTEMPTS):
        with suppress(IllegalTraceError):
            trace = space.attempt(rng, sketch)
            drawn[trace.key] = trace
    return list(drawn.values())[:CANDIDATES]
