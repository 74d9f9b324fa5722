"""What the runner process is set up with, by the clock that times programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from mlir_sched.runner.benchmark_module import find_tools
from mlir_sched.runner.options import RunnerOptions
from mlir_sched.runner.protocol import CallsSetup, EventsSetup, Setup, WallSetup
from mlir_sched.targets.clock import CALLS, EVENTS, WALL, Clock


def setup_of(options: RunnerOptions, cores: tuple[int, ...]) -> Setup:
    """Return what the runner process is set up with; ``cores`` are those that programs are pinned to, if they are."""
    return SETUPS[options.clock](options, cores)


def _wall(options: RunnerOptions, cores: tuple[int, ...]) -> Setup:
    race_cores = tuple(sorted(os.sched_getaffinity(0)))[: options.checks.data_race_threads]
    return WallSetup(cores, race_cores, options.samples.calibration_tolerance)


def _events(options: RunnerOptions, _: tuple[int, ...]) -> Setup:
    return EventsSetup(options.driver.uri, *find_tools())


def _calls(options: RunnerOptions, _: tuple[int, ...]) -> Setup:
    return CallsSetup(options.driver.uri)


SETUPS: Mapping[Clock, Callable[[RunnerOptions, tuple[int, ...]], Setup]] = {
    WALL: _wall,
    EVENTS: _events,
    CALLS: _calls,
}
