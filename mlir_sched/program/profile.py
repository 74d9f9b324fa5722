"""The profile of a compiled program: seconds per dispatch in real runs of the whole program.

IREE records every dispatch of a run on the CPU (``host-execution``) and on devices (``dispatch-events``). The cost of
recording is within noise on one thread (measured on IREE 3.13). A dispatch timed alone represents the dispatch in the
program only when both take about as long.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from mlir_sched.errors import MlirSchedError
from mlir_sched.processes.executable import run_program
from mlir_sched.processes.limits import ChildLimits
from mlir_sched.processes.memory import child_memory_bytes
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.runner.benchmark_module import ProgramFiles, find_tools, write_elements
from mlir_sched.runner.checks.check import Check
from mlir_sched.runner.checks.inputs import make_inputs
from mlir_sched.runner.cores import choose_cores
from mlir_sched.runner.program import Program
from mlir_sched.targets.target import Driver

PROFILED_S = 0.5
"""Seconds of calls that a profile is taken from."""
CALLS = (4, 40)
"""Fewest and most calls of a profile of short calls; the first call is left out."""
TWO_CALLS_S = PROFILED_S / CALLS[0]
"""Seconds per call from which two calls are enough, as the fewest would take longer than a profile should."""
TIMEOUT_S = 300.0
_EVENTS = ("host_dispatch_event", "dispatch_event")
_HOST_TIMES = ("start_host_time_ns", "end_host_time_ns")


@dataclass(frozen=True)
class ProgramProfile:
    """Seconds that each dispatch of a program takes in one run of the program, by the dispatch's symbol.

    Attributes:
        seconds: Seconds of all calls of a dispatch in one run, summed; the median over the runs.
        calls: Number of calls of a dispatch in one run.
        between_s: Seconds of a run between its first and its last dispatch in which none runs: copies and fills of the
            runtime, and its own work; the median over the runs, 0 where IREE does not record when dispatches begin.
    """

    seconds: Mapping[str, float]
    calls: Mapping[str, int]
    between_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Seconds of all dispatches together."""
        return sum(self.seconds.values())

    def shares(self, names: Iterable[str]) -> dict[str, float]:
        """Return the part of the dispatches' time, 0 to 1, that each of a program's dispatches takes.

        IREE numbers dispatches in program order, and skips the number of a dispatch that equals an earlier one. A
        program compiled with other flags may skip fewer numbers: the time of a dispatch that is not in ``names`` counts
        for the dispatch in ``names`` that computes the same; if several do, for the one with the lowest number.

        Args:
            names: Symbols of all dispatches, in the order of the program.
        """
        shares = dict.fromkeys(names, 0.0)
        alike = {_what(name): name for name in reversed(list(shares))}
        for name, taken_s in self.seconds.items():
            known = name if name in shares else alike.get(_what(name))
            if known is not None:
                shares[known] += taken_s / self.total_s
        return shares

    def call_s(self, name: str) -> float | None:
        """Return the seconds of one call of a dispatch; None when no dispatch ran under this name."""
        return self.seconds[name] / self.calls[name] if name in self.seconds else None


def merged(profiles: Sequence[ProgramProfile]) -> ProgramProfile:
    """Return the profile of functions that are called one after the other."""
    names = dict.fromkeys(name for each in profiles for name in each.seconds)
    return ProgramProfile(
        {name: sum(each.seconds.get(name, 0.0) for each in profiles) for name in names},
        {name: sum(each.calls.get(name, 0) for each in profiles) for name in names},
        sum(each.between_s for each in profiles),
    )


def profile_program(program: Program, check: Check, *, driver: Driver, threads: int, call_s: float) -> ProgramProfile:
    """Run a program a few times with IREE's benchmark program and return the profile of its runs.

    Args:
        check: How the program's inputs are filled.
        driver: What runs the program; IREE records dispatches of its clock.
        threads: Threads that the program may use on the CPU.
        call_s: About how long one call takes, seconds.

    Raises:
        MlirSchedError: The program fails, or IREE records nothing for this device.
    """
    benchmark, reader = find_tools()
    calls = 2 if call_s >= TWO_CALLS_S else min(ceil(PROFILED_S / call_s), CALLS[1])
    with temporary_folder() as name:
        folder = Path(name)
        module, record = folder / "program.vmfb", folder / "profile.ireeprof"
        module.write_bytes(program.vmfb)
        arrays = make_inputs(program.inputs, check)
        pairs = enumerate(zip(arrays, program.inputs, strict=True))
        files = tuple(write_elements(folder / f"argument{i}.bin", array, spec) for i, (array, spec) in pairs)
        _run(
            benchmark, *_device_flags(driver, threads), *ProgramFiles(module, program, files).flags(),
            f"--benchmark_min_time={calls}x", f"--device_profiling_output={record}",
        )  # fmt: skip
        listing = _run(reader, "dispatch", "--format=jsonl", "--dispatch_events", str(record))
    return read_profile(listing, calls)


def read_profile(listing: bytes, runs: int) -> ProgramProfile:
    """Return the profile that ``iree-profile dispatch --format=jsonl --dispatch_events`` lists.

    Args:
        listing: Standard output of the command, one JSON object per line, in the order of execution.
        runs: Runs of the program that were recorded, >= 2; the first run does not count.

    Raises:
        MlirSchedError: No event was recorded, or the runs differ in their number of events.
    """
    rows = (json.loads(line) for line in listing.splitlines() if line.strip())
    events = sorted((row for row in rows if row.get("type") in _EVENTS), key=lambda row: int(row["event_id"]))
    width, left = divmod(len(events), runs)
    if not width or left:
        raise MlirSchedError(f"IREE recorded {len(events)} dispatches in {runs} equal runs of this program")
    names = [str(event["key"]) for event in events[:width]]
    durations_s = np.array([event["duration_ns"] for event in events], dtype=np.float64).reshape(runs, width)[1:] * 1e-9
    columns = {name: [i for i, other in enumerate(names) if other == name] for name in names}
    seconds = {name: float(np.median(durations_s[:, mine].sum(axis=1))) for name, mine in columns.items()}
    return ProgramProfile(seconds, {name: len(mine) for name, mine in columns.items()}, _between_s(events, runs))


def _between_s(events: Sequence[Mapping[str, Any]], runs: int) -> float:
    """Return the median, over all runs but the first, of the seconds in which none of a run's dispatches runs."""
    if not all(name in event for event in events for name in _HOST_TIMES):
        return 0.0
    times_ns = np.array([[int(event[name]) for name in _HOST_TIMES] for event in events]).reshape(runs, -1, 2)
    return float(np.median([_idle_ns(run) for run in times_ns[1:]])) * 1e-9


def _idle_ns(times_ns: np.ndarray[Any, Any]) -> int:
    """Return the length of all gaps between intervals, given as rows of (begin, end); intervals may overlap."""
    begins, ends = times_ns[np.argsort(times_ns[:, 0])].T
    return int(np.maximum(begins[1:] - np.maximum.accumulate(ends)[:-1], 0).sum())


def _device_flags(driver: Driver, threads: int) -> tuple[str, ...]:
    recorded = f"--device={driver.device(threads)}", f"--device_profiling_mode={driver.clock.profiling}"
    return (*recorded, "--device_allocator=caching", *_workers(threads)) if driver.on_host else recorded


def _workers(threads: int) -> tuple[str, ...]:
    """Return the flags that pin IREE's workers on the CPU, of which there are some for several threads."""
    return () if threads == 1 else (f"--task_topology_cpu_ids={','.join(map(str, choose_cores(threads)))}",)


def _run(*command: str) -> bytes:
    done = run_program(command, ChildLimits(TIMEOUT_S, child_memory_bytes()))
    if done.code != 0:
        tail = done.errors.decode(errors="replace").strip().splitlines()[-1:]
        raise MlirSchedError(f"{Path(command[0]).name} ended with {done.code}: {' '.join(tail)}")
    return done.output


def _what(name: str) -> str:
    """Return what a dispatch computes, by its symbol without the number: ``matmul_64x64x64_f32``."""
    return name.rpartition("dispatch_")[2].partition("_")[2]
