"""Checks candidates against the results of their baseline, a part of the checks at a time."""

from __future__ import annotations

import time
from enum import Enum, auto
from itertools import cycle, islice

from mlir_sched.errors import Failure, FailureClass
from mlir_sched.runner import protocol
from mlir_sched.runner.checks.inputs import PROBES
from mlir_sched.runner.options import RunnerOptions
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import LONG_CALL_S, RequestFailed
from mlir_sched.runner.race import Contender
from mlir_sched.runner.session import Session

SHORT_CALL_S = 2e-3
"""Seconds per call of the baseline from which the calls of a hopeless program are worth saving."""
REPEATS, REPEAT_S = 8, 1.0
"""How often a program runs again to see whether it repeats its results, and the seconds after which no further call
starts. A data race shows in only some calls; of a program that takes seconds, one more call has to do."""


class Part(Enum):
    """Which of its checks a program gets."""

    WHOLE = auto()
    """All of them, some of them again, and those on other threads that expose races."""
    FIRST = auto()
    """The first, and those that tell, together, wrong results of every output from right ones: one or two as a rule."""
    REST = auto()
    """What a program lacks after its first ones."""


class Checking:
    """Makes the checks of a session's candidates, and remembers what they showed beside right and wrong.

    Args:
        exposes_races: Whether programs can run on other threads than those that time them.
        single: Whether programs are timed on a single core.
    """

    def __init__(self, session: Session, options: RunnerOptions, *, exposes_races: bool, single: bool) -> None:
        self._session = session
        self._options, self._timeouts = options.checks, options.timeouts
        self._exposes_races, self._single = exposes_races, single
        self._last_used = 0
        self._hopeless: dict[int, float] = {}
        self._long: dict[int, float] = {}

    def begin(self) -> None:
        """Forget the candidates of an earlier baseline."""
        self._hopeless, self._long = {}, {}

    def contender(self, handle: int, program: Program, *, proven: bool) -> Contender:
        """Return a right program that is to be timed; one pair times a hopeless one."""
        call_s = self._hopeless.get(handle, self._long.get(handle, 0.0))
        return Contender(handle, program, call_s, once=handle in self._hopeless, proven=proven)

    def prove(self, contender: Contender) -> None:
        """Make the checks that a contender lacks: it is proven then, or has a failure."""
        part = Part.WHOLE if contender.once else Part.REST
        contender.failure = self.failure(contender.handle, contender.program, part)
        contender.proven = contender.failure is None

    def confirm(self, contender: Contender) -> None:
        """Check a program after its thousands of calls: the state it keeps between calls may have gone wrong by then.

        A program that was not proven has lost and stays so, unless it only looked hopeless. Where no check is repeated,
        this one is not.
        """
        if contender.proven:
            contender.failure = self._failure_after_calls(contender) if self._options.repeated else None
        elif contender.once and contender.ratio().median * self._options.hopeless_factor > 1.0:
            self.prove(contender)

    def failure(self, handle: int, program: Program, part: Part) -> Failure | None:
        """Make a part of the checks, and again in a new process if a program that ran before may be at fault."""
        client = self._session.client
        client.start()
        shared = self._last_used == client.generation
        failure = self._check(handle, program, part)
        if failure is not None and shared and self._is_damaged(failure):
            client.kill()
            failure = self._check(handle, program, part)
        self._last_used = client.generation
        return failure

    def repeat(self) -> Failure | None:
        """Return how the baseline differs from itself when it runs again; None where it does not."""
        places = (True, False) if self._exposes_races else (False,)
        telling = self._session.prepared.telling
        requests = [protocol.Verify(protocol.BASELINE, i, races=races) for races in places for i in telling]
        start = time.monotonic()
        try:
            for request in islice(cycle(requests), REPEATS):
                if message := self._session.client.ask(request, self._timeout_s(request)):
                    return Failure(FailureClass.WRONG_RESULT, message)
                if time.monotonic() - start > REPEAT_S:
                    break
        except RequestFailed as failed:
            return failed.failure
        return None

    def _is_damaged(self, failure: Failure) -> bool:
        """Say whether the process crashed, took too much memory, or computes wrong results for the baseline as well."""
        if failure.kind != FailureClass.WRONG_RESULT:
            return failure.kind in (FailureClass.RUN_CRASH, FailureClass.RUN_MEMORY)
        requests = [protocol.Verify(protocol.BASELINE, check) for check in self._session.prepared.telling]
        try:
            return any(self._session.client.ask(each, self._timeout_s(each)) is not None for each in requests)
        except RequestFailed:
            return True

    def _check(self, handle: int, program: Program, part: Part) -> Failure | None:
        """Run a part of the checks on a program.

        How long the calls of a slow program take shows in its checks. A program that shows itself hopeless in its first
        checks gets no further one of them.
        """
        races_s = 0.0
        try:
            self._session.load(handle, program)
            checks, races = self._checks_of(handle, part)
            for number, request in enumerate([*checks, *races]):
                if races_s > self._options.data_race_patience_s:
                    break
                start = time.monotonic()
                if message := self._session.client.ask(request, self._timeout_s(request)):
                    return Failure(FailureClass.WRONG_RESULT, message)
                check_s = time.monotonic() - start
                self._long[handle] = self._call_s_in(check_s)
                races_s += check_s if number >= len(checks) else 0.0
                if part is Part.REST or handle in self._hopeless:
                    continue
                if call_s := self._hopeless_s(handle, check_s):
                    self._hopeless[handle] = call_s
                    if part is Part.FIRST:
                        return None
        except RequestFailed as failed:
            return failed.failure
        return None

    def _checks_of(self, handle: int, part: Part) -> tuple[list[protocol.Verify], list[protocol.Verify]]:
        """Return the checks of a part, some of which run again after the others, and those that look for races."""
        first, every = self._session.prepared.repeated, range(len(self._session.task.checks))
        if part is Part.FIRST:
            return [protocol.Verify(handle, i) for i in first], []
        made = [i for i in every if part is Part.WHOLE or i not in first]
        again = first if self._options.repeated else ()
        return [protocol.Verify(handle, i) for i in (*made, *again)], self._race_checks(handle)

    def _race_checks(self, handle: int) -> list[protocol.Verify]:
        """Return the checks that look for races: none on a single core, or on devices, which run in parallel anyway."""
        if not self._exposes_races:
            return []
        checks = cycle(self._session.prepared.telling)
        return [protocol.Verify(handle, i, races=self._single) for i in islice(checks, self._options.data_race_calls)]

    def _call_s_in(self, check_s: float) -> float:
        """Return how long the call of a check took, beside the comparison; 0 for less than :data:`LONG_CALL_S`."""
        call_s = check_s - self._session.prepared.check_s + self._session.prepared.call_s
        return call_s if call_s >= LONG_CALL_S else 0.0

    def _hopeless_s(self, handle: int, check_s: float) -> float:
        """Return rough seconds per call of a program that cannot win, as a check and then a call took long; else 0."""
        prepared = self._session.prepared
        limit_s = self._options.hopeless_factor * prepared.call_s
        if prepared.call_s < SHORT_CALL_S or check_s - prepared.check_s < limit_s:
            return 0.0
        timeout_s = 4 * self._timeouts.of_call(prepared.call_s)
        call_s: float = self._session.client.ask(protocol.Warm(handle, 0.0), timeout_s)
        return call_s if call_s > limit_s else 0.0

    def _failure_after_calls(self, contender: Contender) -> Failure | None:
        """Return how a program that was proven fails now, if it does."""
        handle, program = contender.handle, contender.program
        try:
            for request in (protocol.Verify(handle, check) for check in self._session.prepared.repeated):
                if message := self._session.ask(handle, program, request, self._timeout_s(request)):
                    return Failure(FailureClass.WRONG_RESULT, f"after timing: {message}")
        except RequestFailed as failed:
            return failed.failure
        return None

    def _timeout_s(self, request: protocol.Verify) -> float:
        """Return the seconds that a check may take: a call, the comparison, and for races making a second workspace.

        For results that are far off, the baseline is called on inputs that are rounded :data:`PROBES` times.
        """
        prepared = self._session.prepared
        patience = self._timeouts.of_call(prepared.call_s) + (3 + 2 * PROBES) * prepared.check_s
        return patience + 3 * self._session.prepare_s if request.races else patience
