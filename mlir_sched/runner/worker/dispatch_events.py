"""Times programs on a device by the timestamps that the device itself writes around every dispatch.

A wall clock around an invocation on a device mostly measures the host: submission, waiting, waking up. IREE's Python
bindings cannot record timestamps, so IREE's benchmark program runs the calls, and the records are read with IREE's
profile reader; both are part of its runtime package.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from mlir_sched.errors import Failure, FailureClass
from mlir_sched.processes.executable import describe_exit, last_words
from mlir_sched.processes.limits import ChildMemoryError
from mlir_sched.runner.benchmark_module import ProgramFiles
from mlir_sched.runner.protocol import LONG_CALL_S, EventsSetup, RequestFailed
from mlir_sched.runner.worker.paired_sampling import PairClock
from mlir_sched.runner.worker.spinning_threads import run_without_spinning
from mlir_sched.targets.clock import EVENTS

WARM_UP_CALLS = 1
"""First calls of a process that are not counted: they make the pipelines and touch the memory (3 to 70x longer)."""

PERCENTILE = 10.0
"""A dispatch's time is this percentile of its durations over the calls of a process: noise only ever adds time, and the
very minimum is luck."""

PROCESSES = 3
"""Most processes of a sample; the fastest process counts. The best time of a program is known after as many processes.
One process is too few: where a driver computes on the CPU, its threads may share a core as long as the process lives,
which doubles the time."""

NEAR_BEST = 1.15
"""A process within this factor of the program's best time ends a sample."""

DISTURBED = 1.25
"""A sample beyond this factor of the program's best time counts as disturbed."""

ROUGH_CALLS = 16
"""Counted calls that tell the rough time of a program."""


class DispatchClock(PairClock[ProgramFiles]):
    """The clock of a device; each sample is measured in processes of its own.

    Args:
        record: File for the records of a process; each process overwrites it.
    """

    def __init__(self, setup: EventsSetup, record: Path) -> None:
        self._setup = setup
        self._record = record
        self._runs: dict[Path, list[float]] = {}

    def forget(self, module: Path) -> None:
        """Forget the times of a module: its file will hold another module."""
        self._runs.pop(module, None)

    def sample(self, program: ProgramFiles, calls: int) -> tuple[float, bool]:
        """Return device seconds per call in the fastest of a few processes, and whether it is near the program's best.

        One process is enough where a call takes :data:`LONG_CALL_S` or more.

        Raises:
            RequestFailed: A process crashes (RUN_CRASH), takes too much memory (RUN_MEMORY), or fails or records no
                usable timestamps (RUN_ERROR).
        """
        seconds = float("inf")
        for _ in range(PROCESSES):
            seconds = min(seconds, self.seconds(program, calls))
            runs = self._runs[program.module]
            known = len(runs) >= PROCESSES and seconds <= NEAR_BEST * min(runs)
            if known or seconds >= LONG_CALL_S:
                break
        return seconds, seconds <= DISTURBED * min(runs)

    def seconds(self, program: ProgramFiles, calls: int) -> float:
        """Return device seconds per call, summed over its dispatches, from ``calls`` calls in one process.

        Raises:
            RequestFailed: As in :meth:`sample`.
        """
        recorded = calls + WARM_UP_CALLS
        self._run(self._setup.benchmark, self._recording(program, recorded))
        listing = self._run(self._setup.profile, ["dispatch", "--format=jsonl", "--dispatch_events", str(self._record)])
        seconds = seconds_per_call(durations_of(listing, recorded))
        self._runs.setdefault(program.module, []).append(seconds)
        return seconds

    def _recording(self, program: ProgramFiles, calls: int) -> list[str]:
        return [
            f"--device={self._setup.driver}",
            *program.flags(),
            f"--benchmark_min_time={calls}x",
            f"--device_profiling_mode={EVENTS.profiling}",
            f"--device_profiling_output={self._record}",
        ]

    def _run(self, tool: str, flags: Sequence[str]) -> bytes:
        """Return the standard output of one of IREE's programs."""
        try:
            ended = run_without_spinning([tool, *flags])
        except ChildMemoryError as error:
            raise RequestFailed(Failure(FailureClass.RUN_MEMORY, f"{Path(tool).name} {error}")) from None
        if ended.code == 0:
            return ended.output
        kind = FailureClass.RUN_CRASH if ended.code < 0 else FailureClass.RUN_ERROR
        raise RequestFailed(Failure(kind, describe_exit(Path(tool).name, ended.code, last_words(ended.errors))))


def durations_of(listing: bytes, calls: int) -> NDArray[np.float64]:
    """Return the durations that ``iree-profile dispatch --format=jsonl --dispatch_events`` lists.

    Args:
        listing: Its standard output, one JSON object per line.
        calls: Calls that were recorded, >= 1.

    Returns:
        Seconds of every dispatch, float64 [calls, dispatches of a call], both in the order of execution.

    Raises:
        RequestFailed: RUN_ERROR: there are no events, one is invalid, or the calls differ in their dispatches.
    """
    rows = [json.loads(line) for line in listing.splitlines() if line.strip()]
    events = sorted((row for row in rows if row.get("type") == "dispatch_event"), key=lambda row: int(row["event_id"]))
    if not events:
        _fail("the device's driver gives no timestamps of dispatches")
    if not all(event.get("valid") and int(event.get("duration_ns", 0)) > 0 for event in events):
        _fail("the device's driver gives timestamps of dispatches that are not valid")
    if len(events) % calls:
        _fail(f"{calls} equal calls made {len(events)} dispatches, which is no multiple")
    width = len(events) // calls
    for position in range(width):
        if len(names := {event["key"] for event in events[position::width]}) > 1:
            _fail(f"equal calls made different dispatches: {', '.join(sorted(names))}")
    nanoseconds = np.array([event["duration_ns"] for event in events], dtype=np.float64)
    return (nanoseconds * 1e-9).reshape(calls, width)


def seconds_per_call(durations: NDArray[np.float64]) -> float:
    """Return the device seconds of a call: each dispatch at its low percentile over the calls, summed.

    Args:
        durations: Seconds, [calls, dispatches of a call]; the first calls are dropped.
    """
    counted = durations[WARM_UP_CALLS:]
    return float(np.percentile(counted, PERCENTILE, axis=0).sum())


def _fail(message: str) -> NoReturn:
    raise RequestFailed(Failure(FailureClass.RUN_ERROR, message))
