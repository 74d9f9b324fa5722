"""The programs of one task in the runner process, prepared and loaded there when they are asked for."""

from __future__ import annotations

import time
from typing import Any

from mlir_sched.errors import EnvironmentFailureError, FailureOrigin, MlirSchedError
from mlir_sched.runner import protocol
from mlir_sched.runner.checks.check import Checks
from mlir_sched.runner.client import RunnerClient
from mlir_sched.runner.options import RunnerOptions
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import RequestFailed

LOADED_BYTES_PER_S = 20e6
"""Lowest rate of handing a program to the process, in bytes per second; 400 MB of weights take about 2 s."""


class BaselineError(MlirSchedError):
    """The baseline itself crashes, hangs or has no reproducible result: nothing can be compared with it."""


class UnverifiableError(BaselineError):
    """No wrong result could be told from those of the baseline; the message says why."""


class Session:
    """A baseline and its candidates at a time, of which the process that runs has those that were asked for.

    A process that is lost is replaced: the baseline is prepared anew there, and each program loaded when it is needed.

    Attributes:
        client: The process.
        prepared: What the process found out about the baseline.
        prepare_s: Most seconds that preparing took so far.
        number: How many baselines there were so far.
    """

    def __init__(self, options: RunnerOptions, client: RunnerClient) -> None:
        self.client = client
        self.prepared = protocol.Prepared(0.0, 0.0, None)
        self.prepare_s = 0.0
        self.number = 0
        self._limits = options.timeouts
        self._task: protocol.Prepare | None = None
        self._prepared_in = 0
        self._loaded: dict[int, int] = {}

    @property
    def task(self) -> protocol.Prepare:
        """The baseline with its checks."""
        assert self._task is not None
        return self._task

    def begin(self, baseline: Program, checks: Checks, *, silent: bool = False) -> None:
        """Begin with a new baseline.

        Args:
            silent: Whether the baseline's results are known to tell nothing.

        Raises:
            BaselineError: The baseline cannot serve as a reference.
            EnvironmentFailureError: The machine fails.
        """
        self._task = protocol.Prepare(baseline, checks, silent)
        self.number += 1
        self._prepare()

    def ask(self, handle: int, program: Program, request: object, timeout_s: float) -> Any:
        """Return the reply to a request about a program, which the process has loaded by then.

        Raises:
            RequestFailed, BaselineError, EnvironmentFailureError: As :meth:`RunnerClient.ask` and :meth:`begin`.
        """
        self.load(handle, program)
        return self.client.ask(request, timeout_s)

    def load(self, handle: int, program: Program) -> None:
        """Load a program if the process does not have it, and first prepare the baseline if the process is new."""
        self.client.start()
        if self._prepared_in != self.client.generation:
            self._prepare()
        if self._loaded.get(handle) != self.client.generation:
            self.client.keep_books(protocol.Load(handle, program), self.load_timeout_s(program))
            self._loaded[handle] = self.client.generation

    def load_timeout_s(self, program: Program) -> float:
        """Return the seconds that handing a program over may take: models carry their weights with them."""
        return self._limits.bookkeeping_s + len(program.vmfb) / LOADED_BYTES_PER_S

    def release(self, count: int) -> None:
        """Release the candidates; what was measured holds, whatever becomes of the process.

        Args:
            count: How many there are; their handles are 1 to this.
        """
        if self._prepared_in == self.client.generation:
            for handle in range(1, count + 1):
                if self._loaded.pop(handle, None) is not None:
                    self.client.tell(protocol.Drop(handle), self._limits.bookkeeping_s)

    def _prepare(self) -> None:
        """Prepare the baseline and its references in the process that runs now."""
        start = time.monotonic()
        try:
            self.prepared = self.client.prepare(self.task, self._limits.first_call_s, self._limits.of_preparing)
        except RequestFailed as failed:
            if failed.failure.origin is FailureOrigin.ENVIRONMENT:
                raise EnvironmentFailureError(f"a program cannot be prepared: {failed}") from failed
            raise BaselineError(f"the baseline fails ({failed.failure.kind}): {failed}") from failed
        if self.prepared.error is not None:
            if not self.prepared.verifiable:
                raise UnverifiableError(self.prepared.error)
            raise BaselineError(f"the baseline cannot serve as a reference: {self.prepared.error}")
        self.prepare_s = max(self.prepare_s, time.monotonic() - start)
        self._prepared_in = self.client.generation
        self._loaded = {protocol.BASELINE: self._prepared_in}
