"""Checks compiled programs and times them against a baseline, in a process of their own."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import cycle, islice

from mlir_sched.errors import EnvironmentFailureError, Failure, FailureClass, FailureOrigin, MlirSchedError
from mlir_sched.outcome import Judged, LoadCost, Timing, Verdict
from mlir_sched.runner import protocol
from mlir_sched.runner.checks.check import Check, Checks
from mlir_sched.runner.checks.inputs import PROBES
from mlir_sched.runner.client import RunnerClient, setup_of
from mlir_sched.runner.cores import busy, choose_cores, other_cores
from mlir_sched.runner.options import RunnerOptions
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import LONG_CALL_S, RequestFailed
from mlir_sched.runner.race import KNOWN_SPREADS, Contender, Places, Race, baseline_timing
from mlir_sched.targets.clock import SpareCores

LOADED_BYTES_PER_S = 20e6
"""Lowest rate of handing a program to the process, in bytes per second; 400 MB of weights take about 2 s."""
SHORT_CALL_S = 2e-3
"""Seconds per call of the baseline from which the calls of a hopeless program are worth saving."""
LOOKS, LOOK_S = 5, 0.02
"""How often, and for how many seconds, the calibration kernel is timed without and then with work on other cores, to
see whether that disturbs it: in turns, as a machine's speed drifts."""

REPEATS, REPEAT_S = 8, 1.0
"""How often a program runs again to see whether it repeats its results, and the seconds after which no further call
starts. A data race shows in only some calls; of a program that takes seconds, one more call has to do."""


class BaselineError(MlirSchedError):
    """The baseline itself crashes, hangs or has no reproducible result: nothing can be compared with it."""


class UnverifiableError(BaselineError):
    """No wrong result could be told from those of the baseline; the message says why."""


class Part(Enum):
    """Which of its checks a program gets."""

    WHOLE = auto()
    """All of them, some of them again, and those on other threads that expose races."""
    FIRST = auto()
    """The first, and those that tell, together, wrong results of every output from right ones: one or two as a rule."""
    REST = auto()
    """What a program lacks after its first ones."""


@dataclass(frozen=True)
class RunResult(Judged):
    """What became of one program that was run.

    Where it competed for places and won none, it may be timed without its remaining checks: it is not checked then, and
    slower than what holds the places.

    Attributes:
        constant_outputs: One sentence for each output that is the same in every check, so that its check says little.
        inside: Names of the dispatches that made the results which were compared inside, once per result.
        unchecked: Why the numbers were not checked; empty where they were, or where nothing more is known.
    """

    constant_outputs: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    unchecked: str = ""

    @property
    def why_not_valid(self) -> str:
        """Why the program is not valid; empty when it is."""
        why = super().why_not_valid
        return f"its numbers cannot be checked: {self.unchecked}" if why and self.unchecked else why


@dataclass(frozen=True)
class Noise:
    """How quiet the machine is.

    Attributes:
        spread: (95th - 5th percentile) / 5th percentile of the calibration kernel's time.
        lost: Share of the kernel's time beyond its 5th percentile, 0 to 1: time that other work took away.
        verdict: One sentence for the user.
    """

    spread: float
    lost: float
    verdict: str


class Runner:
    """Runs programs in a long-lived process, on the CPU pinned to its cores; a context manager.

    A program that hangs or crashes costs that process, which is replaced, and nothing else.
    """

    def __init__(self, options: RunnerOptions | None = None) -> None:
        self.options = options or RunnerOptions()
        self.cores = choose_cores(self.options.threads) if self.options.clock.pins_cores else ()
        setup = setup_of(self.options, self.cores)
        self._check_races = setup.exposes_races
        self._client = RunnerClient(setup)
        self._prepared_in = 0
        self._prepare_s = 0.0
        self._last_used = 0
        self._task: protocol.Prepare | None = None
        self._prepared = protocol.Prepared(0.0, 0.0, None)
        self._loaded: dict[int, int] = {}
        self._measurements = 0
        self._hopeless: dict[int, float] = {}
        self._long: dict[int, float] = {}
        self._spreads: dict[int, deque[float]] = {}  # by the hash of the task

    def spare_cores(self) -> tuple[int, ...]:
        """Return the cores that other work may use while programs are measured; none where it would disturb them.

        On the CPU this is tried, which takes about twice :data:`LOOKS` times :data:`LOOK_S`. The lower quartiles are
        compared: hardware threads of one core slow down every run of the kernel, other machines only some. A GPU whose
        dispatches nothing but the host's clock can time needs one core for the calls. Other devices may be software,
        which takes all cores. Where the process is lost meanwhile, no core is.
        """
        match self.options.clock.spare_cores:
            case SpareCores.NONE:
                return ()
            case SpareCores.BESIDE_CALLS:
                return other_cores(choose_cores(1))
            case SpareCores.UNDISTURBING:
                cores = other_cores(self.cores)
                return cores if cores and self._leaves_undisturbed(cores) else ()

    def measure(
        self,
        baseline: Program,
        candidates: Sequence[Program],
        checks: Checks,
        *,
        silent: bool = False,
        places: Places | None = None,
    ) -> tuple[Timing, tuple[RunResult, ...]]:
        """Check every candidate against the baseline's results, then time the right ones against its times.

        Candidates that compete for places pass the checks that tell wrong results from right ones, once, before they
        are timed. Those that may win a place by their first pairs get all other checks then; the rest stay unchecked.

        Args:
            candidates: Programs that take and make the same tensors as the baseline.
            checks: The numeric checks; a candidate that fails one has no time.
            silent: Whether the baseline's results are known to tell nothing. Candidates that pass all checks are not
                checked then.
            places: What the candidates compete for; by default all checks come before the times, and a candidate loses
                that is slower than the fastest or than the baseline.

        Returns:
            The baseline's timing (its ratio is 1) and one result per candidate, in their order.

        Raises:
            BaselineError: The baseline cannot serve as a reference.
        """
        part = Part.WHOLE if places is None else Part.FIRST
        failures = self._check_all(baseline, candidates, checks, part, silent=silent)
        right = [i for i in range(len(candidates)) if i not in failures]
        contenders = {i: self._contender(i + 1, candidates[i], proven=part is Part.WHOLE) for i in right}
        self._race(self.options, places or Places(held=(1.0,))).run(list(contenders.values()))
        for contender in contenders.values():
            contender.failure = contender.failure or self._check_once_more(contender)
        call_s = self._prepared.call_s
        own = Contender(protocol.BASELINE, baseline, call_s, once=call_s >= LONG_CALL_S)
        if not any(contender.pairs for contender in contenders.values()):
            self._race(self.options.baseline_only, Places()).run([own])
            if own.failure is not None:
                raise BaselineError(f"the baseline fails while it is timed: {own.failure.message}")
        self._release(len(candidates))
        results = tuple(self._result(failures.get(i), contenders.get(i)) for i in range(len(candidates)))
        pairs = [pair for c in (*contenders.values(), own) for pair in c.pairs]
        return baseline_timing(pairs), results

    def check(self, baseline: Program, candidates: Sequence[Program], checks: Checks) -> tuple[Failure | None, ...]:
        """Check every candidate against the baseline's results without timing; return None for each right candidate.

        Raises:
            BaselineError: The baseline cannot serve as a reference.
        """
        failures = self._check_all(baseline, candidates, checks, Part.WHOLE)
        self._release(len(candidates))
        return tuple(failures.get(i) for i in range(len(candidates)))

    def repeat(self, program: Program, checks: Checks) -> Failure | None:
        """Return how a program differs from itself when it runs again; None where it does not.

        To prepare it runs it twice. Here it runs again: on the CPU on several threads and on one, elsewhere as it is
        timed. After :data:`REPEAT_S` seconds no further call starts.

        Args:
            checks: Its checks; those that tell wrong results from right ones take turns.

        Raises:
            BaselineError: It cannot serve as a reference.
        """
        self._prepare_task(program, checks)
        places = (True, False) if self._check_races else (False,)
        requests = [protocol.Verify(protocol.BASELINE, i, races=r) for r in places for i in self._prepared.telling]
        start = time.monotonic()
        try:
            for request in islice(cycle(requests), REPEATS):
                if message := self._client.ask(request, self._check_timeout_s(request)):
                    return Failure(FailureClass.WRONG_RESULT, message)
                if time.monotonic() - start > REPEAT_S:
                    break
        except RequestFailed as failed:
            return failed.failure
        return None

    def load_cost(self, program: Program, calls: Sequence[tuple[Program, Check]]) -> LoadCost:
        """Return what loading a program on the CPU takes, in a new process that ends afterwards.

        Args:
            program: The program.
            calls: Its functions, without their code, each with the check that says how its inputs are filled.

        Raises:
            EnvironmentFailureError: The process is lost meanwhile, or does not start, or the program fails.
        """
        limits = self.options.timeouts
        request, limit_s = protocol.MeasureLoading(program, tuple(calls)), limits.first_call_s
        self.close()
        try:
            cost: LoadCost = self._client.ask(request, self._load_timeout_s(program) + limit_s)
        except RequestFailed as failed:
            raise EnvironmentFailureError(f"what loading takes cannot be measured: {failed}") from failed
        self.close()
        return cost

    def noise(self, seconds: float = 1.0) -> Noise:
        """Measure for ``seconds`` how steady the cores are that programs are timed on.

        Raises:
            ValueError: Programs do not run on the CPU.
            EnvironmentFailureError: The process is lost meanwhile, or does not start.
        """
        if not self.options.clock.pins_cores:
            raise ValueError(f"noise is measured on the CPU; this runner's driver is {self.options.driver.uri}")
        times = self._kernel_times(seconds)
        ordered = sorted(times)
        low, high = ordered[len(ordered) // 20], ordered[-1 - len(ordered) // 20]
        lost = max(0.0, 1 - low * len(times) / sum(times))
        return Noise((high - low) / low, lost, _verdict(lost))

    def close(self) -> None:
        """End the process; the runner starts a new one when it is used again."""
        self._client.kill()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _kernel_times(self, seconds: float) -> Sequence[float]:
        """Return the seconds of every run of the calibration kernel, which is run for ``seconds``."""
        request, limit_s = protocol.MeasureNoise(seconds), seconds + self.options.timeouts.bookkeeping_s
        try:
            times: Sequence[float] = self._client.keep_books(request, limit_s)
        except RequestFailed as failed:
            raise EnvironmentFailureError(f"the machine's noise cannot be measured: {failed}") from failed
        return times

    def _leaves_undisturbed(self, cores: Sequence[int]) -> bool:
        """Say whether the calibration kernel takes no longer beside work on other cores.

        Where the process is lost meanwhile, it is taken to be disturbed.
        """
        quiet, beside = list[float](), list[float]()
        try:
            for _ in range(LOOKS):
                quiet += self._kernel_times(LOOK_S)
                with busy(cores):
                    beside += self._kernel_times(LOOK_S)
        except EnvironmentFailureError:
            return False
        quiet_s, beside_s = (statistics.quantiles(times, n=4)[0] for times in (quiet, beside))
        return beside_s <= (1 + self.options.samples.calibration_tolerance) * quiet_s

    def _race(self, options: RunnerOptions, places: Places) -> Race:
        """Return a race against the current baseline."""
        spreads = self._spreads.setdefault(hash(self._task), deque(maxlen=KNOWN_SPREADS))
        return Race(
            self._ask_pairs,
            self._warm,
            options,
            self._prepared.call_s,
            seed=self._measurements,
            places=places,
            prove=self._prove,
            spreads=spreads,
        )

    def _check_all(
        self, baseline: Program, candidates: Sequence[Program], checks: Checks, part: Part, *, silent: bool = False
    ) -> dict[int, Failure]:
        """Return the failures of the candidates that are not right, by index of the candidate."""
        self._prepare_task(baseline, checks, silent=silent)
        return {i: f for i, program in enumerate(candidates) if (f := self._check_fairly(i + 1, program, part))}

    def _prepare_task(self, baseline: Program, checks: Checks, *, silent: bool = False) -> None:
        """Begin with a new baseline.

        Raises:
            BaselineError, EnvironmentFailureError: As :meth:`_prepare`.
        """
        self._task = protocol.Prepare(baseline, checks, silent)
        self._measurements += 1
        self._hopeless, self._long = {}, {}
        self._prepare()

    def _prepare(self) -> None:
        """Prepare the baseline and its references in the process that runs now.

        Raises:
            BaselineError: The baseline cannot serve as a reference.
            EnvironmentFailureError: The machine fails.
        """
        assert self._task is not None
        start = time.monotonic()
        try:
            limits = self.options.timeouts
            self._prepared = self._client.prepare(self._task, limits.first_call_s, limits.of_preparing)
        except RequestFailed as failed:
            if failed.failure.origin is FailureOrigin.ENVIRONMENT:
                raise EnvironmentFailureError(f"a program cannot be prepared: {failed}") from failed
            raise BaselineError(f"the baseline fails ({failed.failure.kind}): {failed}") from failed
        if self._prepared.error is not None:
            if not self._prepared.verifiable:
                raise UnverifiableError(self._prepared.error)
            raise BaselineError(f"the baseline cannot serve as a reference: {self._prepared.error}")
        self._prepare_s = max(self._prepare_s, time.monotonic() - start)
        self._prepared_in = self._client.generation
        self._loaded = {protocol.BASELINE: self._prepared_in}

    def _ensure_loaded(self, handle: int, program: Program) -> None:
        """Load a program if the process does not have it, and first prepare the task if the process is new."""
        self._client.start()
        if self._prepared_in != self._client.generation:
            self._prepare()
        if self._loaded.get(handle) != self._client.generation:
            self._client.keep_books(protocol.Load(handle, program), self._load_timeout_s(program))
            self._loaded[handle] = self._client.generation

    def _load_timeout_s(self, program: Program) -> float:
        """Return the seconds that handing a program over may take: models carry their weights with them."""
        return self.options.timeouts.bookkeeping_s + len(program.vmfb) / LOADED_BYTES_PER_S

    def _check_fairly(self, handle: int, program: Program, part: Part) -> Failure | None:
        """Make a part of the checks, and again in a new process if a program that ran before may be at fault."""
        self._client.start()
        shared = self._last_used == self._client.generation
        failure = self._check(handle, program, part)
        if failure is not None and shared and self._is_damaged(failure):
            self._client.kill()
            failure = self._check(handle, program, part)
        self._last_used = self._client.generation
        return failure

    def _is_damaged(self, failure: Failure) -> bool:
        """Say whether the process crashed, took too much memory, or computes wrong results for the baseline as well."""
        if failure.kind != FailureClass.WRONG_RESULT:
            return failure.kind in (FailureClass.RUN_CRASH, FailureClass.RUN_MEMORY)
        requests = [protocol.Verify(protocol.BASELINE, check) for check in self._prepared.telling]
        try:
            return any(self._client.ask(each, self._check_timeout_s(each)) is not None for each in requests)
        except RequestFailed:
            return True

    def _check(self, handle: int, program: Program, part: Part) -> Failure | None:
        """Run a part of the checks on a program.

        How long the calls of a slow program take shows in its checks. A program that shows itself hopeless in its first
        checks gets no further one of them.
        """
        races_s = 0.0
        try:
            self._ensure_loaded(handle, program)
            checks, races = self._checks_of(handle, part)
            for number, request in enumerate([*checks, *races]):
                if races_s > self.options.checks.data_race_patience_s:
                    break
                start = time.monotonic()
                if message := self._client.ask(request, self._check_timeout_s(request)):
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
        assert self._task is not None
        first, every = self._prepared.repeated, range(len(self._task.checks))
        if part is Part.FIRST:
            return [protocol.Verify(handle, i) for i in first], []
        made = [i for i in every if part is Part.WHOLE or i not in first]
        again = first if self.options.checks.repeated else ()
        return [protocol.Verify(handle, i) for i in (*made, *again)], self._race_checks(handle)

    def _race_checks(self, handle: int) -> list[protocol.Verify]:
        """Return the checks that look for races: none on a single core, or on devices, which run in parallel anyway."""
        if not self._check_races:
            return []
        checks, single = cycle(self._prepared.telling), len(self.cores) == 1
        return [protocol.Verify(handle, i, races=single) for i in islice(checks, self.options.checks.data_race_calls)]

    def _contender(self, handle: int, program: Program, *, proven: bool) -> Contender:
        """Return a right program that is to be timed; one pair times a hopeless one."""
        call_s = self._hopeless.get(handle, self._long.get(handle, 0.0))
        return Contender(handle, program, call_s, once=handle in self._hopeless, proven=proven)

    def _prove(self, contender: Contender) -> None:
        """Make the checks that a contender lacks: it is proven then, or has a failure."""
        part = Part.WHOLE if contender.once else Part.REST
        contender.failure = self._check_fairly(contender.handle, contender.program, part)
        contender.proven = contender.failure is None

    def _call_s_in(self, check_s: float) -> float:
        """Return how long the call of a check took, beside the comparison; 0 for less than :data:`LONG_CALL_S`."""
        call_s = check_s - self._prepared.check_s + self._prepared.call_s
        return call_s if call_s >= LONG_CALL_S else 0.0

    def _hopeless_s(self, handle: int, check_s: float) -> float:
        """Return rough seconds per call of a program that cannot win, as a check and then a call took long; else 0."""
        limit_s = self.options.checks.hopeless_factor * self._prepared.call_s
        if self._prepared.call_s < SHORT_CALL_S or check_s - self._prepared.check_s < limit_s:
            return 0.0
        call_s: float = self._client.ask(
            protocol.Warm(handle, 0.0), 4 * self.options.timeouts.of_call(self._prepared.call_s)
        )
        return call_s if call_s > limit_s else 0.0

    def _check_once_more(self, contender: Contender) -> Failure | None:
        """Check a program after its thousands of calls: the state it keeps between calls may have gone wrong by then.

        A program that was not proven has lost and stays so, unless it only looked hopeless. Where no check is repeated,
        this one is not.
        """
        if not contender.proven:
            if contender.once and contender.ratio().median * self.options.checks.hopeless_factor > 1.0:
                self._prove(contender)
            return contender.failure
        if not self.options.checks.repeated:
            return None
        try:
            self._ensure_loaded(contender.handle, contender.program)
            for request in (protocol.Verify(contender.handle, check) for check in self._prepared.repeated):
                if message := self._client.ask(request, self._check_timeout_s(request)):
                    return Failure(FailureClass.WRONG_RESULT, f"after timing: {message}")
        except RequestFailed as failed:
            return failed.failure
        return None

    def _check_timeout_s(self, request: protocol.Verify) -> float:
        """Return the seconds that a check may take: a call, the comparison, and for races making a second workspace.

        For results that are far off, the baseline is called on inputs that are rounded :data:`PROBES` times.
        """
        patience = self.options.timeouts.of_call(self._prepared.call_s) + (3 + 2 * PROBES) * self._prepared.check_s
        return patience + 3 * self._prepare_s if request.races else patience

    def _warm(self, contender: Contender) -> float:
        self._ensure_loaded(contender.handle, contender.program)
        timeout_s = 4 * self.options.timeouts.of_call(self._prepared.call_s)
        seconds: float = self._client.ask(protocol.Warm(contender.handle, self.options.samples.least_s / 2), timeout_s)
        return seconds

    def _ask_pairs(self, contender: Contender, request: protocol.SamplePairs) -> tuple[protocol.Pair, ...]:
        self._ensure_loaded(contender.handle, contender.program)
        calls_s = (request.calls + 1) * contender.call_s + (request.baseline_calls + 1) * self._prepared.call_s
        pair_s = calls_s + 2 * self.options.samples.overhead_s
        timeout_s = self.options.timeouts.of_call(0.0) + 20 * request.pairs * pair_s
        pairs: tuple[protocol.Pair, ...] = self._client.ask(request, timeout_s)
        return pairs

    def _release(self, count: int) -> None:
        """Release the candidates; what was measured holds, whatever becomes of the process."""
        if self._prepared_in == self._client.generation:
            for handle in range(1, count + 1):
                if self._loaded.pop(handle, None) is not None:
                    self._client.tell(protocol.Drop(handle), self.options.timeouts.bookkeeping_s)

    def _result(self, failure: Failure | None, contender: Contender | None) -> RunResult:
        failure = failure or (contender.failure if contender else None)
        if failure is not None:
            return RunResult(None, failure)
        assert contender is not None
        assert self._task is not None
        unchecked = self._task.silent or not contender.proven
        verdict = Verdict.NOT_CHECKED if unchecked else Verdict.RIGHT
        return RunResult(contender.timing(), None, self._prepared.constant_outputs, verdict=verdict)


def _verdict(lost: float) -> str:
    if lost < 0.03:
        return "quiet: timings can be trusted"
    if lost < 0.2:
        return "somewhat busy: disturbed samples will be dropped, tuning takes longer"
    return "busy: stop other work on this machine, or expect wide intervals and wrong rankings"
