"""What follows from the clock that times a driver's programs: options, chains, set-ups, profiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import pytest
from fixed_targets import FIXED

from mlir_sched.database.record import measuring_context
from mlir_sched.program.profile import _device_flags
from mlir_sched.runner import CheckOptions, RacingOptions, RunnerOptions, SampleOptions, TimeoutOptions
from mlir_sched.runner.client import SETUPS, setup_of
from mlir_sched.runner.options import BY_CLOCK
from mlir_sched.runner.protocol import CallsSetup, EventsSetup, Setup, WallSetup
from mlir_sched.runner.worker.server import BENCHES
from mlir_sched.targets.clock import CALLS, CLOCKS, EVENTS
from mlir_sched.targets.target import LOCAL, Driver


@dataclass(frozen=True)
class Row:
    """What is expected of programs on a driver.

    Attributes:
        samples, racing, checks, timeouts: The options of a search.
        chain: Dispatches of a chain.
        setup: What the runner process is set up with.
        profiling: How dispatches are recorded; empty where they are not.
        first_look_s: Seconds that the fewest pairs of a first look may take.
        final_s, final_pairs: Seconds per program of the last sessions, and their fewest pairs.
    """

    samples: SampleOptions
    racing: RacingOptions
    checks: CheckOptions
    timeouts: TimeoutOptions
    chain: int
    setup: type
    profiling: str
    first_look_s: float
    final_s: float
    final_pairs: int


SAMPLES = SampleOptions(2e-3, 1, 1_000_000, inf, 0.0, False, 16, 0.08)
RACING = RacingOptions(0.15, 6, 5.0, 2, 0.03, False, 2.0)
CHECKS = CheckOptions(4, 4, 5.0, True, 4.0)


def timeouts(call_s: float) -> TimeoutOptions:
    return TimeoutOptions(call_s, 20.0, 1800.0, 120.0, 180.0)


ON_EVENTS = Row(
    SampleOptions(0.06, 24, 64, 1.0, 0.3, True, 16, 0.08),
    RacingOptions(2.5, 3, 10.0, 2, 0.02, False, 2.0),
    CheckOptions(4, 4, 5.0, True, 8.0),
    timeouts(30.0), 0, EventsSetup, "dispatch-events", 10.0, 8.0, 8,
)  # fmt: skip
ON_CALLS = Row(
    SampleOptions(5e-3, 1, 1_000_000, inf, 0.0, False, 16, 0.08),
    RACING, CHECKS, timeouts(30.0), 32, CallsSetup, "", 5.0, 1.0, 20,
)  # fmt: skip
ROWS = {
    (LOCAL, 1): Row(SAMPLES, RACING, CHECKS, timeouts(1.0), 0, WallSetup, "host-execution", 2.0, 1.0, 20),
    (LOCAL, 2): Row(SAMPLES, RACING, CHECKS, timeouts(10.0), 8, WallSetup, "host-execution", 2.0, 1.0, 20),
    (Driver("vulkan://GPU-00", EVENTS), 1): ON_EVENTS,
    (Driver("hip", EVENTS), 1): ON_EVENTS,
    (Driver("cuda://GPU-00", CALLS), 1): ON_CALLS,
}
"""Rows by driver and threads."""
each_row = pytest.mark.parametrize(("driver", "threads", "row"), [(*key, row) for key, row in ROWS.items()])


@each_row
def test_a_search_has_the_options_of_its_clock(driver: Driver, threads: int, row: Row) -> None:
    options = RunnerOptions.for_device(driver, threads=threads, seed=3)
    assert (options.driver, options.threads, options.seed) == (driver, threads, 3)
    assert (options.samples, options.racing, options.checks) == (row.samples, row.racing, row.checks)
    assert options.timeouts == row.timeouts
    assert options.first_look.racing.patience_s == row.first_look_s


@each_row
def test_the_last_sessions_are_longer(driver: Driver, threads: int, row: Row) -> None:
    options = RunnerOptions.final(driver, threads=threads)
    assert options.racing == RacingOptions(row.final_s, row.final_pairs, 6.0, 6, row.racing.precision, True, 2.0)
    assert options.checks == CheckOptions(4, 4, 30.0, True, row.checks.hopeless_factor)
    assert options.timeouts == row.timeouts


@each_row
def test_short_dispatches_are_timed_with_the_chain_of_the_clock(driver: Driver, threads: int, row: Row) -> None:
    assert RunnerOptions.for_device(driver, threads=threads).chain_length == row.chain
    target = replace(FIXED, driver=driver, cores=threads)
    assert target.chain_length == row.chain
    assert ("calls=chained" in measuring_context(target)) is (row.chain > 0), "times of chains are kept apart"


@each_row
def test_the_runner_process_is_set_up_for_the_clock(driver: Driver, threads: int, row: Row) -> None:
    setup = setup_of(RunnerOptions.for_device(driver, threads=threads), (0,))
    assert type(setup) is row.setup
    if isinstance(setup, EventsSetup | CallsSetup):
        assert setup.driver == driver.uri


@each_row
def test_dispatches_are_recorded_in_the_way_of_the_clock(driver: Driver, threads: int, row: Row) -> None:
    assert driver.clock.profiling == row.profiling
    if row.profiling:
        assert f"--device_profiling_mode={row.profiling}" in _device_flags(driver, threads)


def test_every_clock_has_its_options_its_set_up_and_its_bench() -> None:
    assert set(BY_CLOCK) == set(SETUPS) == set(CLOCKS)
    assert set(Setup.__subclasses__()) == set(BENCHES)
    made = {type(SETUPS[clock](RunnerOptions(Driver("vulkan", clock)), (0,))) for clock in CLOCKS}
    assert made == set(Setup.__subclasses__())
