"""What a run's pieces of work take, in seconds: what was done is counted, and what is to come is predicted from it.

Everything that divides the minutes of a run asks the ledger how long something takes, and how long the end takes that
is still to come. Predictions follow from the programs that the run has built and timed, from its clock, and from what
was counted in this process; what is decided by them is decided once (``TuningRun.decide``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import accumulate

from mlir_sched.database import RecordStore
from mlir_sched.database.engine import StoreOutageError
from mlir_sched.database.work_cost import WorkCost, WorkKind
from mlir_sched.program.variant import BuiltVariant, Rivals
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets.target import Target

VARIANT_CALLS = 4
"""Calls for the check and the timing of a variant: two checks, and the pair with the default that a slow one gets."""
COVERING_BUILDS, OVERTAKING_BUILDS = 10.0, 8.0
"""Seconds relative to those in which a program was compiled and taken apart: to measure two candidates of each of its
dispatches and their untuned code; and of the search until the refinement of a variant is faster than the variant is
without scripts."""
CANDIDATE_CALLS = 25
"""Seconds of a candidate before any was tried, in calls of the untuned code."""
COMPOSING = 1 / 2
"""Seconds to compile and time a program with other algorithms, relative to those before the search. To find the
algorithms as well takes as long as all that."""
REPORT_CANDIDATES, LEAST_CANDIDATES, CHOICE_CANDIDATES = 2.0, 1.0, 1.25
"""Seconds of the finalists of a task in candidates, whose seconds the search has shown: to compile and report its best
script, at least for the session, and for the choice among its finalists."""
FINALIST_S = 2.0
"""Seconds of the finalists of a task, at least, before the search has shown any. Where they need more, fewer tasks have
a choice."""
FIRST_CHOICE_S, REPORT_ONLY_S = 4.0, 1.5
"""Most seconds of a choice, and of a task without a choice, whose script is compiled and reported, where samples are
short: before any were counted."""
LONGER_REPORT_S = 1.8
"""Further seconds of a report whose session is not a short one: it takes more samples."""
FINALISTS_COMPARED = 2
"""Scripts that a choice is expected to be between."""
SHORT_SESSION_S = 0.25
"""Most seconds of sampling per program in a short session, fewest pairs apart."""
LEAST_REPORT_S, LONGEST_REPORT_S = 2.0, 10.0
"""Least and most seconds of sampling in the session that reports the program: it takes what is left of the minutes
between the two, and its interval becomes narrower."""
SESSION_S = 1.0
"""Seconds that a session takes besides its calls: its process starts and loads the programs."""
REFERENCE_CALLS, CHECK_CALLS = 3, 8
"""Calls that checks take in a session where calls are slow: of the program that all are compared with, unless another
process knows its results, and of every other one, those that look for data races and those after timing included."""
LOADING_CALLS = 2
"""Calls of each program whose loading is measured."""
AFTER_S = 2.0
"""Seconds after the last session, about twice what the profile of the program and the report take."""


@dataclass(frozen=True)
class End:
    """What the end of a run takes, in seconds.

    Attributes:
        emission_s: Of emission.
        reports_s: Of the finalists beside further choices: a report of every script.
        least_s: Of both at least.
        choices_s: Of choices among the finalists of all tasks; there may be fewer.
    """

    emission_s: float = 0.0
    reports_s: float = 0.0
    least_s: float = 0.0
    choices_s: float = 0.0


@dataclass
class Ledger:
    """The costs of one run.

    Attributes:
        options: The options of the sessions at the end.
        store: Where the costs of work that was done are kept; None for nowhere.
        key: The run's key there.
        until: The end of the run by ``time.monotonic()``; infinite for a run by trials.
        build_s: Seconds in which the default was compiled and taken apart, as other variants may be; 0 until known.
        call_s: Seconds per call of the default; 0 until known.
        begun_s: Seconds of the run before the search.
        finalist_s: Seconds of the finalists of a task before the search has shown a candidate's.
        counted: What was done in this process.
    """

    options: RunnerOptions = field(default_factory=RunnerOptions)
    store: RecordStore | None = None
    key: str = ""
    until: float = math.inf
    build_s: float = 0.0
    call_s: float = 0.0
    begun_s: float = 0.0
    finalist_s: float = FINALIST_S
    counted: list[WorkCost] = field(default_factory=list)

    @staticmethod
    def of(target: Target, store: RecordStore) -> Ledger:
        """Return the ledger of a run that begins now or is resumed."""
        return Ledger(RunnerOptions.final(target.driver), store)

    @contextmanager
    def counting(self, kind: WorkKind, subject: str, count: int = 1) -> Iterator[None]:
        """Count what the block of code costs, unless it raises; arguments as the attributes of :class:`WorkCost`."""
        start = time.monotonic()
        yield
        self.add(WorkCost(kind, subject, count, time.monotonic() - start))

    def add(self, cost: WorkCost) -> None:
        """Count a cost, and store it; a store that refuses at present costs the figure, and not the run."""
        self.counted.append(cost)
        if self.store is not None:
            with suppress(StoreOutageError):
                self.store.add_work_cost(self.key, cost)

    def variants_s(self, timed: int) -> float:
        """Return the seconds to compile one more variant and then time so many."""
        return self.build_s + VARIANT_CALLS * self.call_s * timed

    @property
    def covering_s(self) -> float:
        """Seconds to measure two candidates of every dispatch of a program, and their untuned code."""
        return COVERING_BUILDS * self.build_s

    @property
    def overtaking_s(self) -> float:
        """Seconds of the search until the refinement of a variant is faster than the variant is without scripts."""
        return OVERTAKING_BUILDS * self.build_s

    def candidate_s(self, untuned_s: float) -> float:
        """Return the seconds of a candidate before any was tried, given those per call of the untuned code."""
        return CANDIDATE_CALLS * untuned_s

    def pace_s(self, tasks: Collection[str]) -> float:
        """Return the mean seconds of the candidates of some tasks, by key, or else of all; 0 before any was counted.

        The run's earlier processes count, too, where there is a store: a resumed run has the pace of one that was not
        interrupted.
        """
        known = self.counted if self.store is None else self.store.work_costs(self.key)
        counted = [cost for cost in known if cost.kind is WorkKind.CANDIDATES]
        counted = [cost for cost in counted if cost.subject in tasks] or counted
        return sum(cost.seconds for cost in counted) / sum(cost.count for cost in counted) if counted else 0.0

    @property
    def plain_s(self) -> float:
        """Seconds to compile and time the default, and to prove it as it is emitted, in sessions as short as can be."""
        session_s = self.session_s(self.call_s, [self.call_s], 0.0)
        return self.variants_s(1) + self.build_s + session_s + AFTER_S

    @property
    def composing_s(self) -> float:
        """Seconds to compile and time a program with other algorithms."""
        return COMPOSING * self.begun_s

    @property
    def algorithms_s(self) -> float:
        """Seconds to find other algorithms, with their tasks, and to compile and time a program with them."""
        return self.begun_s

    def end(
        self,
        built: Sequence[BuiltVariant],
        tuned: BuiltVariant,
        tuned_s: float | None = None,
        *,
        tasks: int,
        candidate_s: float = 0.0,
    ) -> End:
        """Return what the end of the run takes.

        Args:
            built, tuned_s: As of :meth:`emission_s`, with the variant to emit.
            tasks: How many tasks have scripts to report.
            candidate_s: Seconds that a candidate takes; 0 as long as none was tried.
        """
        emission_s, least_s = (self.emission_s(built, tuned, tuned_s, least=least) for least in (False, True))
        if not candidate_s:
            return End(emission_s, self.finalist_s * tasks, least_s)
        return End(
            emission_s,
            REPORT_CANDIDATES * candidate_s * tasks,
            least_s + LEAST_CANDIDATES * candidate_s * tasks,
            CHOICE_CANDIDATES * candidate_s * tasks,
        )

    def first_finalist_s(self, built: BuiltVariant) -> float:
        """Return the seconds of the finalists of each task of a variant, at least: one script has a short report.

        Samples that have a process of their own take most of the time.
        """
        if not built.was_run:
            return FINALIST_S
        untuned_s = built.call_s / max(1, sum(task.weight for task in built.model.tasks))
        return max(FINALIST_S, self.sampling_s(untuned_s, [untuned_s], SHORT_SESSION_S))

    def emission_s(
        self, built: Sequence[BuiltVariant], tuned: BuiltVariant, tuned_s: float | None = None, *, least: bool = False
    ) -> float:
        """Return the seconds to emit a program.

        The proof takes as long as compiling and taking apart the variant took. One session decides, with all variants
        that may be as fast as the emitted program, if there are any; loading is measured, and one session reports.
        Nothing is measured of a variant that was not run.

        Args:
            built: All variants, the default first.
            tuned_s: Seconds per call that it is expected to take; by default what it takes without scripts.
            least: At least: sessions have the fewest pairs, loading is not measured, and the session that decides is
                the only one where the default may be as fast as the emitted program.
        """
        if not tuned.was_run:
            return tuned.build_s + AFTER_S
        default, tuned_s = built[0], tuned.call_s if tuned_s is None else tuned_s
        rivals, most_s, sessions_s = Rivals.of(built, tuned_s), 0.0 if least else math.inf, 0.0
        if not rivals.undisputed:
            others_s = [tuned_s, *(each.call_s for each in rivals.others)]
            sessions_s += self.session_s(rivals.reference.call_s, others_s, most_s)
        if not least or rivals.undisputed or default not in (rivals.reference, *rivals.others):
            sessions_s += self.session_s(default.call_s, [tuned_s], most_s)
        loading_s = 0.0 if least else self.loading_s([default.call_s, tuned_s])
        return tuned.build_s + sessions_s + loading_s + AFTER_S

    def session_s(self, reference_s: float, others_s: Sequence[float], most_s: float = math.inf) -> float:
        """Return the seconds of a session; arguments as in :meth:`sampling_s`."""
        return self.sampling_s(reference_s, others_s, most_s) + self.checking_s([reference_s, *others_s])

    def sampling_s(self, reference_s: float, others_s: Sequence[float], most_s: float = math.inf) -> float:
        """Return the seconds that the samples of a session take; the number of pairs is fixed.

        Args:
            reference_s: Seconds per call of the program that all others are compared with.
            others_s: Seconds per call of the others.
            most_s: Most seconds of sampling per program, but for the fewest pairs.
        """
        options = self.options.capped(most_s)
        samples, racing = options.samples, options.racing
        pairs_s = [samples.sample_s(reference_s) + samples.sample_s(seconds) for seconds in others_s]
        return sum(max(racing.budget_s, racing.planned_pairs(pair_s) * pair_s) for pair_s in pairs_s)

    def checking_s(self, calls_s: Sequence[float]) -> float:
        """Return the seconds that a session takes besides its samples.

        Args:
            calls_s: Seconds per call of its programs, that which all others are compared with first.
        """
        reference_s, *others_s = calls_s
        return SESSION_S + REFERENCE_CALLS * reference_s + CHECK_CALLS * sum(others_s)

    def loading_s(self, calls_s: Sequence[float]) -> float:
        """Return the seconds in which the loading of programs is measured, each in a process; nothing is off the CPU.

        Args:
            calls_s: Seconds per call of the programs.
        """
        on_host = self.options.driver.on_host
        return sum(SESSION_S + LOADING_CALLS * call_s for call_s in calls_s) if on_host else 0.0

    def choice_s(self, untuned_s: float, best_s: float) -> float:
        """Return the seconds of a choice among the finalists of a task: the mean of those that were counted.

        Samples that take more than the seconds above, as on devices, count as they are, in reports, too.

        Args:
            untuned_s, best_s: Seconds per call of the task's untuned code and of its fastest code.
        """
        counted = [cost for cost in self.counted if cost.kind is WorkKind.CHOICE]
        if counted:
            return sum(cost.seconds for cost in counted) / len(counted)
        return max(FIRST_CHOICE_S, self.sampling_s(untuned_s, [best_s] * FINALISTS_COMPARED))

    def report_s(self, untuned_s: float, best_s: float, least_s: float = REPORT_ONLY_S) -> float:
        """Return the seconds to compile and report the script of a task in a short session; arguments as above.

        Args:
            least_s: What this takes where calls are short.
        """
        short_s = self.sampling_s(untuned_s, [best_s], SHORT_SESSION_S)
        further_s = max(0.0, short_s - SHORT_SESSION_S)
        return least_s + further_s + REFERENCE_CALLS * untuned_s + CHECK_CALLS * best_s

    def longer_report_s(self, untuned_s: float, best_s: float) -> float:
        """Return the further seconds of a report whose session is not a short one; arguments as above."""
        short_s = self.sampling_s(untuned_s, [best_s], SHORT_SESSION_S)
        return max(LONGER_REPORT_S, self.sampling_s(untuned_s, [best_s]) - short_s)

    def chosen_s(self, untuned_s: float, best_s: float) -> float:
        """Return the seconds of a choice and the report that follows; arguments as above."""
        calls_s = untuned_s, best_s
        return self.choice_s(*calls_s) + self.report_s(*calls_s) + self.longer_report_s(*calls_s)

    def left_s(self) -> float:
        """Return the seconds that are left of the run for sessions, which may be below 0."""
        return self.until - AFTER_S - time.monotonic()

    def affords(self, seconds: float) -> bool:
        """Say whether so many seconds are left for sessions."""
        return self.left_s() >= seconds

    def most_rivals(self, reference_s: float, rivals_s: Sequence[float]) -> int:
        """Return how many rivals a session can hold with the fewest pairs in half of the time; at least one.

        Args:
            reference_s: Seconds per call of the program that all are compared with.
            rivals_s: Seconds per call of the rivals, the fastest first.
        """
        pairs, half_s = self.options.racing.min_slow_pairs, max(0.0, self.left_s()) / 2
        costs_s = [pairs * (reference_s + call_s) + CHECK_CALLS * call_s for call_s in rivals_s]
        return max(1, sum(total <= half_s for total in accumulate(costs_s)))

    def deciding_s(self, calls_s: Sequence[float], default_s: float) -> float:
        """Return the most seconds of sampling per program in the session that decides: the one that reports fits, too.

        Args:
            calls_s: Seconds per call of the programs in the session, that which all are compared with first.
            default_s: Seconds per call of the default program, which the other session compares with.
        """
        pair = [default_s] * 2
        checks_s = self.checking_s(calls_s) + self.checking_s(pair) + self.loading_s(pair)
        return max(0.0, self.left_s() - checks_s) / (max(1, len(calls_s) - 1) + 1)

    def reporting_s(self, call_s: float) -> float:
        """Return the seconds of sampling in the session that reports: all that is left; infinite in a run by trials.

        Args:
            call_s: Seconds per call of the program that the emitted one is compared with.
        """
        if self.until == math.inf:
            return math.inf
        return min(max(self.left_s() - self.checking_s([call_s] * 2), LEAST_REPORT_S), LONGEST_REPORT_S)
