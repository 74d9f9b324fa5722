"""The messages between the runner and its process.

One request is answered by one reply; both travel as frames (``processes/frames.py``). Requests name programs by handles
that the parent chooses; handle 0 is the baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from mlir_sched.errors import Failure
from mlir_sched.runner.program import Program
from mlir_sched.runner.verify import Rule

BASELINE = 0
"""Handle of the baseline program."""
LONG_CALL_S = 1.0
"""Seconds of a call that is made as seldom as can be; the first one tells how long it takes: warming up is little of
that."""


class RequestFailed(Exception):  # noqa: N818 - it carries a failure, it is not an error of the tool
    """A request got no answer; ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True)
class LocalSetup:
    """Programs run on the CPU: on ``cores``, and to look for races on ``race_cores``."""

    cores: tuple[int, ...]
    race_cores: tuple[int, ...]
    calibration_tolerance: float


@dataclass(frozen=True)
class DeviceSetup:
    """Programs run on an IREE HAL device.

    Attributes:
        driver: Its URI.
        benchmark: Path of IREE's ``iree-benchmark-module``, which runs programs and records dispatches.
        profile: Path of IREE's ``iree-profile``, which reads the records.
    """

    driver: str
    benchmark: str
    profile: str


Setup: TypeAlias = LocalSetup | DeviceSetup


@dataclass(frozen=True)
class Start:
    """First request: what to run on, and a folder for files, which the parent removes in the end. Reply: None."""

    setup: Setup
    folder: str


@dataclass(frozen=True)
class Prepare:
    """Forget all programs, load the baseline and compute the references of each check. Reply: Prepared."""

    baseline: Program
    rule: Rule


@dataclass(frozen=True)
class Prepared:
    """What is known of the baseline.

    Attributes:
        call_s: Rough seconds per call, by the clock that times programs.
        check_s: Longest seconds one check of it took, inputs and comparison included.
        error: Why it cannot serve as a reference, or None.
        verifiable: Whether wrong results could be told from its own; False is one of the errors.
    """

    call_s: float
    check_s: float
    error: str | None
    verifiable: bool = True


@dataclass(frozen=True)
class Load:
    """Load a program under a handle. Reply: None."""

    handle: int
    program: Program


@dataclass(frozen=True)
class Drop:
    """Release a program. Reply: None."""

    handle: int


@dataclass(frozen=True)
class Verify:
    """Run one check of the rule on a loaded program. Reply: None when right, else a message.

    Attributes:
        handle: The program.
        check: Index of the check in the rule.
        races: Run on all race cores instead of the cores of timing.
    """

    handle: int
    check: int
    races: bool = False


@dataclass(frozen=True)
class Warm:
    """Run a program until it is warm. Reply: rough seconds per call, on a device by its timestamps."""

    handle: int
    sample_s: float


@dataclass(frozen=True)
class SamplePairs:
    """Time a program and the baseline back to back. Reply: tuple of Pair.

    Attributes:
        handle: The program.
        pairs: Number of pairs, >= 1.
        baseline_calls, calls: Calls per sample of the baseline and of the program, >= 1.
        seed: Decides which of the two comes first in each pair.
        pairs_per_baseline: Pairs, also of other requests, that a long sample of the baseline may serve; 1 is none but
            its own.
    """

    handle: int
    pairs: int
    baseline_calls: int
    calls: int
    seed: int
    pairs_per_baseline: int = 1


@dataclass(frozen=True)
class Pair:
    """A sample of the baseline and one of the program.

    Attributes:
        baseline_s, own_s: Seconds per call.
        quiet: Whether the machine was quiet meanwhile.
        shared: Whether the sample of the baseline is that of the pair before: the two are not independent.
    """

    baseline_s: float
    own_s: float
    quiet: bool
    shared: bool = False


@dataclass(frozen=True)
class MeasureNoise:
    """Run the calibration kernel for so many seconds, shared by the cores. Reply: tuple of seconds per run."""

    seconds: float


@dataclass(frozen=True)
class Raised:
    """Reply to a request that raised an exception in the process."""

    failure: Failure
