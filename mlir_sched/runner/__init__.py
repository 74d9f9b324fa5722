"""Checks compiled programs and times them against a baseline, in a process of their own."""

from mlir_sched.runner.cores import choose_cores
from mlir_sched.runner.options import CheckOptions, RacingOptions, RunnerOptions, SampleOptions, TimeoutOptions
from mlir_sched.runner.program import Program
from mlir_sched.runner.race import Places
from mlir_sched.runner.runner import Noise, Runner, RunResult
from mlir_sched.runner.session import BaselineError, UnverifiableError

__all__ = [
    "BaselineError",
    "CheckOptions",
    "Noise",
    "Places",
    "Program",
    "RacingOptions",
    "RunResult",
    "Runner",
    "RunnerOptions",
    "SampleOptions",
    "TimeoutOptions",
    "UnverifiableError",
    "choose_cores",
]
