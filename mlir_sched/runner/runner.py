"""Checks compiled programs and times them against a baseline, in a process of their own."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir_sched.errors import EnvironmentFailureError, Failure
from mlir_sched.outcome import Judged, LoadCost, Timing, Verdict
from mlir_sched.runner import protocol
from mlir_sched.runner.checking import Checking, Part
from mlir_sched.runner.checks.check import Check, Checks
from mlir_sched.runner.client import RunnerClient, setup_of
from mlir_sched.runner.cores import busy, choose_cores, other_cores
from mlir_sched.runner.options import RunnerOptions
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import LONG_CALL_S, RequestFailed
from mlir_sched.runner.race import KNOWN_SPREADS, Contender, Places, Race, baseline_timing
from mlir_sched.runner.session import BaselineError, Session
from mlir_sched.targets.clock import SpareCores

LOOKS, LOOK_S = 5, 0.02
"""How often, and for how many seconds, the calibration kernel is timed without and then with work on other cores, to
see whether that disturbs it: in turns, as a machine's speed drifts."""


@dataclass(frozen=True)
class RunResult(Judged):
    """What became of one program that was run.

    Where it competed for places and won none, it may be timed without its remaining checks: it is not checked then, and
    slower than what holds the places.

    Attributes:
        constant_outputs: One sentence for each output that is the same in every check, so that its check says little.
        inside: Names of the dispatches that made the results which were compared inside, once per result.
        unchecked: Why the numbers were not checked; empty where they were, or where nothing more is known.
        least: What the ratio is at least, by all that the other programs beside the baseline show; 0 if not known.
    """

    constant_outputs: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    unchecked: str = ""
    least: float = 0.0

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
        self._client = RunnerClient(setup)
        self._session = Session(self.options, self._client)
        single = len(self.cores) == 1
        self._checking = Checking(self._session, self.options, exposes_races=setup.exposes_races, single=single)
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
        places = places or Places(held=(1.0,), whole=True)
        part = Part.WHOLE if places.whole else Part.FIRST
        failures = self._check_all(baseline, candidates, checks, part, silent=silent)
        right = [i for i in range(len(candidates)) if i not in failures]
        contenders = {i: self._checking.contender(i + 1, candidates[i], proven=part is Part.WHOLE) for i in right}
        spreads = self._spreads.setdefault(hash(self._session.task), deque(maxlen=KNOWN_SPREADS))
        race = self._race(self.options, places, spreads=spreads, confirm=self._checking.confirm)
        race.run(list(contenders.values()))
        call_s = self._session.prepared.call_s
        own = Contender(protocol.BASELINE, baseline, call_s, once=call_s >= LONG_CALL_S)
        if not any(contender.pairs for contender in contenders.values()):
            self._race(self.options.baseline_only, Places()).run([own])
            if own.failure is not None:
                raise BaselineError(f"the baseline fails while it is timed: {own.failure.message}")
        self._session.release(len(candidates))
        results = tuple(self._result(failures.get(i), contenders.get(i)) for i in range(len(candidates)))
        pairs = [pair for c in (*contenders.values(), own) for pair in c.pairs]
        return baseline_timing(pairs), results

    def check(self, baseline: Program, candidates: Sequence[Program], checks: Checks) -> tuple[Failure | None, ...]:
        """Check every candidate against the baseline's results without timing; return None for each right candidate.

        Raises:
            BaselineError: The baseline cannot serve as a reference.
        """
        failures = self._check_all(baseline, candidates, checks, Part.WHOLE)
        self._session.release(len(candidates))
        return tuple(failures.get(i) for i in range(len(candidates)))

    def repeat(self, program: Program, checks: Checks) -> Failure | None:
        """Return how a program differs from itself when it runs again; None where it does not.

        To prepare it runs it twice. Here it runs again: on the CPU on several threads and on one, elsewhere as it is
        timed. After a second no further call starts.

        Args:
            checks: Its checks; those that tell wrong results from right ones take turns.

        Raises:
            BaselineError: It cannot serve as a reference.
        """
        self._session.begin(program, checks)
        return self._checking.repeat()

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
            cost: LoadCost = self._client.ask(request, self._session.load_timeout_s(program) + limit_s)
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

    def _race(
        self,
        options: RunnerOptions,
        places: Places,
        *,
        spreads: deque[float] | None = None,
        confirm: Callable[[Contender], None] = lambda _: None,
    ) -> Race:
        """Return a race against the current baseline."""
        return Race(
            self._ask_pairs,
            self._warm,
            options,
            self._session.prepared.call_s,
            seed=self._session.number,
            places=places,
            prove=self._checking.prove,
            confirm=confirm,
            spreads=spreads,
        )

    def _check_all(
        self, baseline: Program, candidates: Sequence[Program], checks: Checks, part: Part, *, silent: bool = False
    ) -> dict[int, Failure]:
        """Return the failures of the candidates that are not right, by index of the candidate."""
        self._session.begin(baseline, checks, silent=silent)
        self._checking.begin()
        return {i: f for i, program in enumerate(candidates) if (f := self._checking.failure(i + 1, program, part))}

    def _warm(self, contender: Contender) -> float:
        handle, timeout_s = contender.handle, 4 * self.options.timeouts.of_call(self._session.prepared.call_s)
        request = protocol.Warm(handle, self.options.samples.least_s / 2)
        seconds: float = self._session.ask(handle, contender.program, request, timeout_s)
        return seconds

    def _ask_pairs(self, contender: Contender, request: protocol.SamplePairs) -> tuple[protocol.Pair, ...]:
        baseline_s = (request.baseline_calls + 1) * self._session.prepared.call_s
        calls_s = (request.calls + 1) * contender.call_s + baseline_s
        pair_s = calls_s + 2 * self.options.samples.overhead_s
        timeout_s = self.options.timeouts.of_call(0.0) + 20 * request.pairs * pair_s
        handle, program = contender.handle, contender.program
        pairs: tuple[protocol.Pair, ...] = self._session.ask(handle, program, request, timeout_s)
        return pairs

    def _result(self, failure: Failure | None, contender: Contender | None) -> RunResult:
        failure = failure or (contender.failure if contender else None)
        if failure is not None:
            return RunResult(None, failure)
        assert contender is not None
        unchecked = self._session.task.silent or not contender.proven
        verdict = Verdict.NOT_CHECKED if unchecked else Verdict.RIGHT
        constant, least = self._session.prepared.constant_outputs, contender.least
        return RunResult(contender.timing(), None, constant, least=least, verdict=verdict)


def _verdict(lost: float) -> str:
    if lost < 0.03:
        return "quiet: timings can be trusted"
    if lost < 0.2:
        return "somewhat busy: disturbed samples will be dropped, tuning takes longer"
    return "busy: stop other work on this machine, or expect wide intervals and wrong rankings"
