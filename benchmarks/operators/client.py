"""The benchmark's side of a peer: start its process, ask it, and let it run only while it is asked."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

ROOT = Path(__file__).parents[2]
STDERR_TAIL_BYTES = 600


class PeerError(Exception):
    """A peer says no, dies or takes too long; the message says which."""


@dataclass(frozen=True)
class PeerSpec:
    """How a peer is started.

    Attributes:
        name: The framework.
        python: Interpreter of its environment.
        module: What it runs.
        places: Whether OpenMP puts each thread on one core. It then does so with the thread that starts processes too,
            which would have to share that core.
        environment: Variables of its own.
    """

    name: str
    python: Path
    module: str
    places: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


class PeerProcess:
    """A running peer on some cores; a context manager.

    The process is stopped (SIGSTOP) except while it is asked something: threads that spin after their work would
    otherwise take the cores from the framework that is timed.
    """

    def __init__(self, spec: PeerSpec, cores: Sequence[int]) -> None:
        self.spec = spec
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [str(spec.python), "-m", spec.module, "--cores", ",".join(map(str, cores))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment_of(spec, cores),
            cwd=ROOT,
            bufsize=0,
        )

    def ask(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Return the reply to a request.

        Raises:
            PeerError: The reply is an error, or there is none.
        """
        assert self._process.stdin is not None
        try:
            self._process.send_signal(signal.SIGCONT)
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            line = self._read_line(time.monotonic() + timeout_s)
            self._process.send_signal(signal.SIGSTOP)
        except BrokenPipeError:
            line = b""
        if not line:
            raise PeerError(f"{self.spec.name} ended: {self._last_words()}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise PeerError(reply["error"])
        return reply

    def close(self) -> None:
        """End the process."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read_line(self, deadline: float) -> bytes:
        """Return one line, or nothing when the process ended."""
        assert self._process.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([self._process.stdout], [], [], left_s)[0]:
                raise PeerError(f"{self.spec.name} gave no answer in time")
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            if not chunk:
                return b""
            line += chunk
        return line

    def _last_words(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - STDERR_TAIL_BYTES))
        said = self._stderr.read().decode(errors="replace").strip()
        return f"exit code {self._process.returncode}; {said or 'it said nothing'}"


def environment_of(spec: PeerSpec, cores: Sequence[int]) -> dict[str, str]:
    """Return the environment of a peer: as many threads as cores."""
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
    return os.environ | settings | (each if spec.places else {}) | dict(spec.environment)
