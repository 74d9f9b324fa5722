"""Checks compiled programs and times them against a baseline, in a process of their own."""

from mlir_sched.runner.options import RunnerOptions
from mlir_sched.runner.program import Program
from mlir_sched.runner.runner import BaselineError, Noise, Runner, RunResult, UnverifiableError, choose_cores

__all__ = [
    "BaselineError",
    "Noise",
    "Program",
    "RunResult",
    "Runner",
    "RunnerOptions",
    "UnverifiableError",
    "choose_cores",
]
