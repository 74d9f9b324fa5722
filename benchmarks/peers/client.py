"""The benchmark's side of a peer: starts the peer's process, sends requests, and stops the process in between."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.folders import ROOT
from mlir_sched.processes.child import Child
from mlir_sched.processes.executable import describe_exit, last_words, run_program
from mlir_sched.processes.limits import ChildError, ChildLimits
from mlir_sched.processes.memory import child_memory_bytes
from mlir_sched.processes.python_child import python_command

SAMPLE_TIMEOUT_S = 300.0


class PeerError(Exception):
    """A peer replied with an error, died or took too long; the message says which."""


@dataclass(frozen=True)
class PeerSpec:
    """The description of a peer from which its process is started.

    Attributes:
        name: Name of the framework.
        python: Interpreter of the framework's environment.
        module: The Python module that the process runs.
        places: Whether OpenMP pins each thread to one core. OpenMP then also pins the thread that starts processes,
            and these would have to share its core.
        environment: Further environment variables of the process.
    """

    name: str
    python: Path
    module: str
    places: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


class PeerProcess:
    """A running peer on some cores; a context manager.

    The process is stopped (SIGSTOP) except while it answers a request: threads that spin after their work would
    otherwise take the cores from the framework that is being timed.
    """

    def __init__(self, spec: PeerSpec, cores: Sequence[int]) -> None:
        self._child = Child(
            f"the {spec.name} process",
            spec.module,
            environment_of(spec, cores),
            arguments=(",".join(map(str, cores)),),
            python=spec.python,
        )

    def ask(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Return the reply to a request.

        Raises:
            PeerError: The reply is an error, or the process gives no reply.
        """
        limits = ChildLimits(timeout_s, child_memory_bytes())
        try:
            self._child.send_signal(signal.SIGCONT)
            self._child.send(dict(request), limits)
            reply: dict[str, Any] = self._child.receive(limits, time.monotonic())
            self._child.send_signal(signal.SIGSTOP)
        except ChildError as error:
            raise PeerError(str(error)) from None
        if "error" in reply:
            raise PeerError(reply["error"])
        return reply

    def sample(self, way: int, seconds: float) -> tuple[float, bool]:
        """Return seconds per call of a way, sampled for so long, and whether nothing disturbed it; errors as above."""
        reply = self.ask({"ask": "sample", "way": way, "seconds": seconds}, SAMPLE_TIMEOUT_S)
        return reply["call_s"], reply["alone"]

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()


def run_module(
    module: str,
    *arguments: str,
    timeout_s: float,
    python: str | Path = sys.executable,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """Run one of the benchmarks' modules to its end, in a process of its own, and return its standard output.

    Args:
        arguments: What it finds in ``sys.argv[1:]``.
        environment: Environment variables in addition to those of this process.

    Raises:
        PeerError: The module failed or took too long.
    """
    limits = ChildLimits(timeout_s, child_memory_bytes())
    command = python_command(module, *arguments, python=python)
    try:
        ended = run_program(command, limits, {**(environment or {}), "PYTHONPATH": str(ROOT)})
    except ChildError as error:
        raise PeerError(f"{module}: {error}") from None
    if ended.code != 0:
        raise PeerError(describe_exit(module, ended.code, last_words(ended.errors)))
    return ended.output


def environment_of(spec: PeerSpec, cores: Sequence[int]) -> dict[str, str]:
    """Return the environment variables that a peer gets in addition to this process's: as many threads as cores."""
    count = str(len(cores))
    each = {"OMP_PROC_BIND": "close", "OMP_PLACES": ",".join(f"{{{core}}}" for core in cores)}
    settings = {
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "TVM_NUM_THREADS": count,
        "TVM_BIND_THREADS": "0",  # TVM's own choice ignores the cores that the process is pinned to; see peer_tvm.py
        "PYTHONPATH": str(ROOT),
    }
    return settings | (each if spec.places else {}) | dict(spec.environment)
