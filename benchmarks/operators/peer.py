"""The side of a peer: a process that answers requests and times its framework's calls.

This file is imported in the environments of all frameworks, so it needs Python and numpy only, and of mlir-sched what
needs no more. Every framework's calls
are timed by the same code, in a process that is pinned before the framework is loaded.
"""

from __future__ import annotations

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

from benchmarks.operators.tuning import Tuning
from mlir_sched.processes.frames import read_frame, write_frame

MAX_WALL_OVER_CPU = 1.03
"""A sample on one thread with more wall time per CPU time was interrupted by other work."""

ROUGH_S = 5e-3
"""Seconds spent on a first estimate of a call's time."""

LONG_S = 0.1
"""Seconds of a call that needs no better estimate than one call, and no warm caches."""


class CannotRun(Exception):  # noqa: N818 - it is an answer, not an error
    """The framework cannot run the operator; the message says why."""


@dataclass(frozen=True)
class Way:
    """One way in which a framework computes an operator.

    Attributes:
        label: The column that it belongs to; of the ways of one column the fastest counts.
        detail: What sets it apart in its column, or nothing.
        run: Calls it so many times.
        result: Calls it once and returns what it makes, as one array.
    """

    label: str
    detail: str
    run: Callable[[int], None]
    result: Callable[[], np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Prepared:
    """What a peer can run.

    Attributes:
        ways: Of computing the operator.
        empty_calls: Functions that call the smallest program so many times, one element plus one element: by the
            column whose calls are like it, and under the empty name for all other columns.
        tuning: What it took to find the ways, by column.
        notes: What a reader has to know, one sentence each.
    """

    ways: tuple[Way, ...]
    empty_calls: Mapping[str, Callable[[int], None]]
    tuning: Mapping[str, Tuning] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Peer(ABC):
    """A framework in its process."""

    def __init__(self, cores: Sequence[int]) -> None:
        self.cores = tuple(cores)

    @abstractmethod
    def prepare(self, request: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any]]) -> Prepared:
        """Return the ways to compute ``request["operator"]`` on the inputs.

        Raises:
            CannotRun: The framework has no equivalent, or found none; the message says what.
        """


class Server:
    """Answers the requests of one run."""

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
            path = f"{request['output']}-{index}.npy"
            np.save(path, way.result())
            replies.append({"label": way.label, "detail": way.detail, "output": path})
        return {
            "ways": replies,
            "empty_calls": list(prepared.empty_calls),
            "tuning": {label: asdict(tuning) for label, tuning in prepared.tuning.items()},
            "notes": list(prepared.notes),
        }

    def _sample(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Time a way by its number; the empty calls are numbered after the ways."""
        way, seconds = request["way"], request["seconds"]
        run = self._runs[way]
        if way not in self._call_s:
            self._call_s[way] = rough_call_s(run)
        calls = max(1, math.ceil(seconds / self._call_s[way]))
        call_s, alone = timed(run, calls, threads=len(self._peer.cores))
        self._call_s[way] = min(self._call_s[way], call_s)
        return {"call_s": call_s, "alone": alone}


def rough_call_s(run: Callable[[int], None]) -> float:
    """Return rough seconds per call: that of a first long call, or the best of what fits a few milliseconds."""
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
    """Return seconds per call, and whether the calls had their cores for themselves (unknown on several: True).

    A call before them fills the caches, which others have taken; one of :data:`LONG_S` is the sample itself.
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
        make: From the cores that the process is pinned to: the peer.
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
        SystemExit: It is not there; ``needed`` says what is.
    """
    try:
        return __import__(name, fromlist=["_"])
    except ImportError as error:
        raise SystemExit(f"{error}; this process needs {needed} ({Path(sys.executable)})") from error
