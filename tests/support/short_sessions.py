"""Runs of ``mlir-sched`` with short sessions at their end, also as a program.

Usage: ``python short_sessions.py [PROGRAM.py] ARGUMENT...``; without a Python program, the arguments are the command's.

Where a test asks what a run does, and not how narrow the interval of a ratio is, a fifth of the samples is enough.
"""

from __future__ import annotations

import runpy
import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from mlir_sched.cli import main
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets.target import Driver

LONG = RunnerOptions.final


def short(driver: Driver, *, threads: int = 1, seed: int = 0) -> RunnerOptions:
    """Return ``RunnerOptions.final`` with a fifth of the samples, at least 6 pairs on the CPU and 3 on a device."""
    options = LONG(driver, threads=threads, seed=seed)
    fewest = 6 if options.driver.on_host else 3
    racing = replace(
        options.racing, budget_s=options.racing.budget_s / 5, min_pairs=fewest, min_slow_pairs=fewest, overtime=1.0
    )
    return replace(options, racing=racing)


def short_sessions() -> AbstractContextManager[Any]:
    """Return a context in which the final decisions and the reported figures of a run come from short sessions."""
    return patch.object(RunnerOptions, "final", short)


if __name__ == "__main__":
    with short_sessions():
        if sys.argv[1:] and sys.argv[1].endswith(".py"):
            del sys.argv[0]
            runpy.run_path(sys.argv[0], run_name="__main__")
        else:
            sys.exit(main(sys.argv[1:]))
