"""One candidate measured by the runner, for tests: the sources of programs, their shape and checks, and the result."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from folders import DATA

from mlir_sched.errors import Failure
from mlir_sched.payload import TensorSpec
from mlir_sched.runner import CheckOptions, Program, RacingOptions, Runner, RunnerOptions, RunResult
from mlir_sched.runner.checks.check import Check, Checks, InputKind

SOURCES = DATA / "runner"
SQUARE, VECTOR = TensorSpec((64, 64), "f32"), TensorSpec((1000,), "f32")
CHECKS = (Check(InputKind.EXACT, 1), Check(InputKind.RANDOM, 2, tolerance=1e-5))
FAST = RunnerOptions(racing=RacingOptions(budget_s=0.05), checks=CheckOptions(data_race_calls=40))
Compiled: TypeAlias = Callable[[str], Program]
"""From the name of a source to its program."""


def only(runner: Runner, baseline: Program, candidate: Program, checks: Checks = CHECKS) -> RunResult:
    _, (result,) = runner.measure(baseline, [candidate], checks)
    return result


def failure_of(result: RunResult) -> Failure:
    assert result.failure is not None
    return result.failure


def fake_program(folder: Path, body: str) -> str:
    """Return the path of a program that stands for one of IREE's."""
    path = folder / "fake"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)
