"""The messages between the runner and its process.

One request is answered by one reply; both travel as frames (``processes/frames.py``). Requests name programs by handles
that the parent chooses; handle 0 is the baseline.
"""

from dataclasses import dataclass

from mlir_sched.errors import Failure
from mlir_sched.runner.checks.check import Check, Checks
from mlir_sched.runner.program import Program

BASELINE = 0
"""Handle of the baseline program."""
LONG_CALL_S = 0.1
"""Seconds per call from which a program is called as rarely as possible: its first call already tells its time, without
a call to warm up. Reading 100 MB of weights into cold caches takes a tenth of this at most."""


class RequestFailed(Exception):  # noqa: N818 - it carries a failure, it is not an error of the tool
    """A request got no answer; ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True)
class Setup:
    """What programs run on and are timed by: one class per clock."""

    @property
    def exposes_races(self) -> bool:
        """Whether programs may also run on more or fewer threads than those of timing, which shows data races."""
        return False

    @property
    def is_lost_by_errors(self) -> bool:
        """Whether an error of a program may be one of all programs that follow in the same process."""
        return False


@dataclass(frozen=True)
class WallSetup(Setup):
    """The CPU: programs run on ``cores``, and on ``race_cores`` to expose data races."""

    cores: tuple[int, ...]
    race_cores: tuple[int, ...]
    calibration_tolerance: float

    @property
    def exposes_races(self) -> bool:
        """Whether there are several threads to run programs on."""
        return max(len(self.cores), len(self.race_cores)) > 1


@dataclass(frozen=True)
class EventsSetup(Setup):
    """An IREE HAL device, on which programs run and which is closed while they are timed.

    Attributes:
        driver: Its URI.
        benchmark: Path of IREE's ``iree-benchmark-module``, which runs programs and records dispatches.
        profile: Path of IREE's ``iree-profile``, which reads the records.
    """

    driver: str
    benchmark: str
    profile: str


@dataclass(frozen=True)
class CallsSetup(Setup):
    """An IREE HAL device whose dispatches IREE does not record: programs are timed by the host's clock around calls."""

    driver: str

    @property
    def is_lost_by_errors(self) -> bool:
        """True: the device is open as long as the process lives."""
        return True


@dataclass(frozen=True)
class Start:
    """First request: what to run on, and where files are. Reply: None.

    Attributes:
        folder: A folder of the process, which the parent removes in the end.
        kept: A folder of the parent, for files that all of its processes find.
    """

    setup: Setup
    folder: str
    kept: str


@dataclass(frozen=True)
class Prepare:
    """Forget all programs, load the baseline and compute the references of each check.

    Replies: a Called for every call whose results become references, then Prepared.

    Attributes:
        silent: Whether its results are known to tell nothing: they may be the same in every check.
    """

    baseline: Program
    checks: Checks
    silent: bool = False


@dataclass(frozen=True)
class Called:
    """A sign of life before the reply to a Prepare: a call of the baseline took so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Prepared:
    """What preparing a task has found out about the baseline.

    Attributes:
        call_s: Rough seconds per call, by the clock that times programs or, of a slow program, in a check.
        check_s: Seconds of the longest check of the baseline, comparing inputs and results included.
        error: Why the baseline cannot serve as a reference, or None.
        verifiable: Whether wrong results could be told from the baseline's; if not, ``error`` says why.
        constant_outputs: One sentence for each output that is the same in every check.
        telling: Indices of checks that tell, together, wrong results of every other output from right ones.
    """

    call_s: float
    check_s: float
    error: str | None
    verifiable: bool = True
    constant_outputs: tuple[str, ...] = ()
    telling: tuple[int, ...] = (0,)

    @property
    def repeated(self) -> tuple[int, ...]:
        """Indices of the checks that are made again: the first, which has other inputs than timing, and the telling."""
        return tuple(dict.fromkeys((0, *self.telling)))


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
    """Run one check on a loaded program. Reply: None when right, else a message.

    Attributes:
        check: Index of the check among those of the task.
        races: Whether to run on all race cores instead of the cores of timing.
    """

    handle: int
    check: int
    races: bool = False


@dataclass(frozen=True)
class Warm:
    """Run a program until it is warm. Reply: rough seconds per call, by the clock that times programs."""

    handle: int
    sample_s: float


@dataclass(frozen=True)
class SamplePairs:
    """Time a program and the baseline back to back. Reply: tuple of Pair.

    Attributes:
        pairs: Number of pairs, >= 1.
        baseline_calls, calls: Calls per sample of the baseline and of the program, >= 1.
        seed: Decides which of the two comes first in each pair.
        pairs_per_baseline: Most pairs, those of later requests included, that one long sample of the baseline may
            serve; with 1 every pair has a sample of its own.
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
        quiet: Whether the machine was quiet during both samples.
        shared: Whether the baseline sample is that of the pair before: the two pairs are not independent.
    """

    baseline_s: float
    own_s: float
    quiet: bool
    shared: bool = False


@dataclass(frozen=True)
class MeasureLoading:
    """Load a program in a process that has loaded none, and call its functions. Reply: LoadCost.

    Attributes:
        program: The program.
        calls: Its functions, without their code, each with the check that says how its inputs are filled.
    """

    program: Program
    calls: tuple[tuple[Program, Check], ...]


@dataclass(frozen=True)
class MeasureNoise:
    """Run the calibration kernel for ``seconds``, divided among the cores. Reply: tuple of seconds per run."""

    seconds: float


@dataclass(frozen=True)
class Raised:
    """Reply to a request that raised an exception in the process."""

    failure: Failure
