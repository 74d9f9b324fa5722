"""The peer's side: a process that answers requests and times its framework's calls.

This file is imported in the environments of all frameworks, so it needs only Python, numpy and those modules of
mlir-sched that need nothing else. Every framework's calls are timed by the same code, in a process whose cores are set
before its programs are prepared.
"""

import ctypes
import math
import os
import signal
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.tuning import Tuning
from mlir_sched.processes.frames import read_frame, write_frame

MAX_WALL_OVER_CPU = 1.03
"""Largest wall time per CPU time of a sample on one thread that was not interrupted by other work."""

ROUGH_S = 5e-3
"""Seconds spent on a first estimate of a call's time."""

LONG_S = 0.1
"""A call of at least this many seconds is estimated and sampled from one call, without warming the caches."""


class CannotRun(Exception):  # noqa: N818 - it is an answer, not an error
    """The framework cannot run the operator; the message says why."""


@dataclass(frozen=True)
class Way:
    """One way in which a framework computes an operator.

    Attributes:
        label: The column that the way belongs to; of the ways of one column the fastest counts.
        detail: What distinguishes the way from the others of its column; may be empty.
        run: Computes the operator the given number of times.
        results: Computes the operator once and returns its results.
    """

    label: str
    detail: str
    run: Callable[[int], None]
    results: Callable[[], Sequence[np.ndarray[Any, Any]]]


@dataclass(frozen=True)
class Prepared:
    """A peer's ways and empty calls for an operator.

    Attributes:
        ways: The ways in which the peer computes the operator.
        empty_calls: Per column, a function that makes n calls of a one-element addition; the empty name serves columns
            without their own.
        tuning: Trials and seconds that finding the ways took, by column.
        notes: Notes for readers of the results, one sentence each.
    """

    ways: tuple[Way, ...]
    empty_calls: Mapping[str, Callable[[int], None]]
    tuning: Mapping[str, Tuning] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def way_of(
    label: str, detail: str, call: Callable[[], Any], back: Callable[[Any], Sequence[np.ndarray[Any, Any]]]
) -> Way:
    """Return the way that makes one call per computation; ``back`` gives a call's results as arrays."""

    def run(calls: int) -> None:
        for _ in range(calls):
            call()

    return Way(label, detail, run, lambda: [np.ascontiguousarray(array) for array in back(call())])


class Peer(ABC):
    """A framework in its process."""

    def __init__(self, cores: Sequence[int]) -> None:
        self.cores = tuple(cores)

    @abstractmethod
    def prepare(self, request: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any]]) -> Prepared:
        """Return the ways to compute ``request["operator"]`` on the inputs.

        Raises:
            CannotRun: The framework has no equivalent of the operator, or its tuning found no valid program; the
                message says which.
        """


class Server:
    """A handler of the requests that a peer's process receives."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._runs: tuple[Callable[[int], None], ...] = ()
        self._call_s: dict[int, float] = {}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to one request; an error is a reply too."""
        try:
            return self._prepare(request) if request["ask"] == "prepare" else self._sample(request)
        except CannotRun as error:
            return {"error": str(error)}
        except Exception as error:
            traceback.print_exc()
            return {"error": f"{type(error).__name__}: {error}"[:500]}

    def _prepare(self, request: Mapping[str, Any]) -> dict[str, Any]:
        prepared = self._peer.prepare(request, [np.load(path) for path in request["inputs"]])
        self._runs = (*(way.run for way in prepared.ways), *prepared.empty_calls.values())
        self._call_s = {}
        replies = []
        for index, way in enumerate(prepared.ways):
            paths = list[str]()
            for place, array in enumerate(way.results()):
                paths.append(f"{request['output']}-{index}-{place}.npy")
                np.save(paths[-1], array)
            replies.append({"label": way.label, "detail": way.detail, "outputs": paths})
        return {
            "ways": replies,
            "empty_calls": list(prepared.empty_calls),
            "tuning": {label: asdict(tuning) for label, tuning in prepared.tuning.items()},
            "notes": list(prepared.notes),
        }

    def _sample(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Time the way with the requested number; the numbers of the empty calls follow those of the ways."""
        way, seconds = request["way"], request["seconds"]
        run = self._runs[way]
        if way not in self._call_s:
            self._call_s[way] = rough_call_s(run)
        calls = max(1, math.ceil(seconds / self._call_s[way]))
        call_s, alone = timed(run, calls, threads=len(self._peer.cores))
        self._call_s[way] = min(self._call_s[way], call_s)
        return {"call_s": call_s, "alone": alone}


def rough_call_s(run: Callable[[int], None]) -> float:
    """Return rough seconds per call: those of the first call if it is long, else the best within a few milliseconds."""
    start = time.perf_counter()
    run(1)
    first_s = time.perf_counter() - start
    if first_s >= LONG_S:
        return first_s
    calls, best, start = 1, math.inf, time.perf_counter()
    while True:
        before = time.perf_counter()
        run(calls)
        now = time.perf_counter()
        best = min(best, (now - before) / calls)
        if now - start >= ROUGH_S:
            return best
        calls *= 2


def timed(run: Callable[[int], None], calls: int, *, threads: int) -> tuple[float, bool]:
    """Return seconds per call, and whether the calls had their core to themselves (True on several threads: unknown).

    A call before the timed ones fills the caches, which hold other ways' data; if one call is asked for and this
    first call takes :data:`LONG_S` or more, it is the sample itself.
    """
    first = _timed(run, 1, threads)
    return first if calls == 1 and first[0] >= LONG_S else _timed(run, calls, threads)


def _timed(run: Callable[[int], None], calls: int, threads: int) -> tuple[float, bool]:
    cpu = time.thread_time_ns()
    start = time.perf_counter_ns()
    run(calls)
    wall_ns = time.perf_counter_ns() - start
    cpu_ns = time.thread_time_ns() - cpu
    return wall_ns * 1e-9 / calls, threads > 1 or wall_ns <= MAX_WALL_OVER_CPU * cpu_ns


def serve(make: Callable[[Sequence[int]], Peer]) -> None:
    """Answer the requests on the connection until it closes.

    The process ends with its parent, even while it is stopped.

    Args:
        make: Makes the peer from the cores to which the process is pinned.
    """
    connection, cores = int(sys.argv[1]), tuple(int(core) for core in sys.argv[3].split(","))
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    os.sched_setaffinity(0, cores)
    server = Server(make(cores))
    with suppress(EOFError, ConnectionError):
        while True:
            write_frame(connection, server.answer(read_frame(connection)))
    sys.stderr.flush()
    os._exit(0)  # IREE's runtime crashes when the interpreter takes it down


def load_module(name: str, needed: str) -> Any:
    """Import a framework's module.

    Raises:
        SystemExit: The module cannot be imported; the message names the framework ``needed``.
    """
    try:
        return __import__(name, fromlist=["_"])
    except ImportError as error:
        raise SystemExit(f"{error}; this process needs {needed} ({Path(sys.executable)})") from error
