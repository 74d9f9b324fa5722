"""The budget of a run, in candidates or in seconds, and what the searches of its programs may spend of the budget.

All functions are pure: the searches say how far they are, and are told how far they may go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mlir_sched.search.strategy import DRAWN
from mlir_sched.text import duration
from mlir_sched.tuning.ledger import End, Ledger
from mlir_sched.tuning.options import DEFAULT_TRIALS_PER_TASK, TuneOptions

LEAST_RUN = 2.5
"""Least seconds of a run by time over those in which the plain program is compiled and proven: in less there is hardly
time for anything else."""
PICKS = 3
"""Candidates per task of a run without a search: as many as finalists are chosen from."""
LEAST_FINALISTS_S, FINALISTS_SHARE = 15.0, 1 / 2
"""Most seconds that the finalists of a run without a search take: the first number however few tasks there are, else
the second one times what a run by time sets aside. The few candidates were timed in turns just before, so that choices
once more are for the tasks of most time."""
COMPILING = 1 / 3
"""Share of the given minutes in which variants are compiled and timed."""
EXPLORATION = 1 / 2
"""Share of the budget that is spent before one program is chosen. The rungs of successive halving have equal parts of
this share: log2 of the explored programs, rounded up, but at least two."""
CHOICE_SHARE = 0.05
"""Most of the whole time that is set aside for choices among finalists."""
ROUND_SHARE = 0.1
"""Most of the time for the search that a round should take, in a run by time."""
REVIEW_SHARE = 0.7
"""Share of the time for the search of the last program after which the end of this search is set anew."""
MOST_REVIEWS = 4
"""Most times that the end of the search is set anew."""
SET_ASIDE, MOST_SET_ASIDE = 1 / 3, 1 / 2
"""Most of the given minutes that is set aside for finalists and emission, and for emission as short as it can be: of a
program of seconds per call that may take more than a third of a short run."""
ALGORITHMS_SHARE, ALGORITHMS_WEIGHT, ALGORITHMS_CANDIDATES = 1 / 2, 2.0, 16
"""Most that is spent on the tasks in which other algorithms differ from a program. The first number is a share of what
is left. The second is relative to the share of the program's time that the algorithms are for: 2, as the tasks of both
sides are searched. The third is candidates per task: with few of them the choice between algorithms is chance."""
CALLING_THREAD_SHARE = 1 / 8
"""Most of what is left, in a run by time, that the search of a short program in the calling thread gets at first."""
ALGORITHMS_ROUNDS = 2
"""Least number of rounds per task left, by trials, for which other algorithms are tried."""
FIRST_ROUND = 2
"""Candidates of a task's first round by time; the least number by trials, where the tasks share one round, so that a
small budget reaches many. A larger budget does not change which candidates are tried: its run goes on where a run with
a smaller budget ended."""


@dataclass(frozen=True)
class SearchProgress:
    """How far the search of a program is, before a round.

    Attributes:
        tried: Candidates tried on the program.
        now_s: Seconds on the run's clock.
        tasks: How many of its tasks are searched, or wait until their untuned code is measured.
        reached: Whether the task of the next round had an earlier round.
        begun: Whether an interrupted process had begun the next round.
        diverged: Whether a resumed process measures other candidates than the process before.
    """

    tried: int
    now_s: float
    tasks: int
    reached: bool
    begun: bool
    diverged: bool = False


@dataclass(frozen=True)
class Allowance:
    """What the search of one program may spend at a time, given by the end: an allowance by trials or by time.

    Attributes:
        round_size: Most candidates of a round.
        trials: Candidates tried on the program by the end, all earlier ones included; None for an allowance by time.
        until_s: Seconds on the run's clock at the end; used when ``trials`` is None.
        most: Most candidates tried on the program by the end, by time; None for any number.
        ended: Candidates tried on the program when an earlier process came to the end, by time: a resumed run ends at
            the same number. None when no earlier process came to the end.
    """

    round_size: int
    trials: int | None
    until_s: float = 0.0
    most: int | None = None
    ended: int | None = None

    @property
    def by_time(self) -> bool:
        """Whether the end is a time, and not a number of candidates."""
        return self.trials is None

    def next_round(self, search: SearchProgress) -> int:
        """Return how many candidates the next round may try; 0 at the end.

        First rounds are small where there are several tasks, so that the search gets to the last task: any script may
        make a dispatch many times faster. By time, a resumed run finishes a round that was begun, and an allowance that
        an earlier process finished, even after ``until_s``: what that process measured takes no time. A run that
        diverged does not.
        """
        if self.trials is None:
            in_time = search.now_s < self.until_s
            goes_on = search.begun or in_time
            if self.ended is not None:
                goes_on = search.tried < self.ended and (in_time or not search.diverged)
            whole = search.reached or search.tasks == 1
            size = self.round_size if whole else min(FIRST_ROUND, self.round_size)
            if self.most is not None:
                size = min(size, max(0, self.most - search.tried))
            return size if goes_on else 0
        share = self.round_size if search.reached else max(FIRST_ROUND, self.round_size // search.tasks)
        return min(self.round_size, share, max(0, self.trials - search.tried))

    def untuned_until_s(self, now_s: float) -> float:
        """Return the seconds on the run's clock after which no further untuned code is measured.

        By time, half of what remains at ``now_s`` is for untuned code; by trials there is no limit.
        """
        return math.inf if self.trials is not None else (now_s + self.until_s) / 2


@dataclass(frozen=True)
class RungTurn:
    """The turn of one program in a rung of successive halving.

    Attributes:
        explored: How many programs are explored in all.
        rung: Number of the rung, from 0.
        programs: How many programs share the rung.
        place: Place of the program in the rung, from 0.
    """

    explored: int
    rung: int
    programs: int
    place: int


@dataclass(frozen=True)
class Budget:
    """What a whole run may spend.

    The methods are told the candidates tried so far on a program (``own``), on the other programs (``elsewhere``) or on
    all (``tried``), the seconds on the run's clock (``now_s``), the tasks in question (``tasks``), and the share of the
    program's time that other algorithms are for, 0 to 1 (``share``).

    Attributes:
        round_size: Most candidates of a round.
        trials: Candidates of all programs; None for a run by time.
        seconds: Seconds on the run's clock at the end of the search; used when ``trials`` is None.
        begun_s: Seconds on the run's clock when the search began; the programs were compiled and timed before.
        whole_s: Seconds on the run's clock at the end of the whole run; infinite for a run by trials.
        most_finalists_s: Most seconds of all finalists; infinite for a search by trials.
    """

    round_size: int
    trials: int | None
    seconds: float = 0.0
    begun_s: float = 0.0
    whole_s: float = math.inf
    most_finalists_s: float = math.inf

    @property
    def by_time(self) -> bool:
        """Whether the budget is in seconds."""
        return self.trials is None

    @staticmethod
    def of(options: TuneOptions, *, tasks: int, begun_s: float, end: End | None = None) -> Budget:
        """Return the budget that a user gave a run, or else the default budget.

        Args:
            tasks: The largest number of tasks that can be tuned in one variant.
            end: What the end of the run takes, before any candidate shows the pace.
        """
        end = end or End()
        if options.minutes is not None:
            whole_s = 60 * options.minutes
            return Budget(options.round_size, None, search_end_s(whole_s, end), begun_s, whole_s)
        picked_s = max(LEAST_FINALISTS_S, FINALISTS_SHARE * end.reports_s)
        most_s = picked_s if options.is_one_shot else math.inf
        return Budget(options.round_size, trials_of(options, tasks), begun_s=begun_s, most_finalists_s=most_s)

    def most_of_round(self, candidate_s: float) -> int:
        """Return the most candidates of a round on a task of which one should take so many seconds."""
        if self.trials is not None:
            return self.round_size
        fitting = ROUND_SHARE * max(0.0, self.seconds - self.begun_s) / candidate_s
        return min(self.round_size, max(FIRST_ROUND, int(fitting)))

    def explored(self, programs: int) -> int:
        """Return how many of the programs are explored, at least one: a small budget in trials leaves some out."""
        if self.trials is None:
            return programs
        return max(1, min(programs, int(self.trials * EXPLORATION / self.round_size)))

    def allowance(self, turn: RungTurn, *, own: int, elsewhere: int) -> Allowance:
        """Return what a program may spend in its turn: by trials whole rounds, at least one."""
        share = _rung_share(turn.explored)
        if self.trials is None:
            spent = share * turn.rung + share * (turn.place + 1) / turn.programs
            return Allowance(self.round_size, None, self.begun_s + max(0.0, self.seconds - self.begun_s) * spent)
        rounds = max(1, int(self.trials * share / turn.programs / self.round_size))
        return Allowance(self.round_size, min(own + rounds * self.round_size, self.trials - elsewhere))

    def kept(self, last: RungTurn, *, tried: int) -> int:
        """Return how many programs are left after a rung: half, rounded up, or one when :data:`EXPLORATION` is spent.

        Args:
            last: The last turn of the rung.
            tried: Candidates tried so far on all explored programs; a program's round may be more than its share.
        """
        spent = _rung_share(last.explored) * (last.rung + 1) if self.trials is None else tried / self.trials
        return math.ceil(last.programs / 2) if spent < EXPLORATION else 1

    def rest(self, *, elsewhere: int) -> Allowance:
        """Return the allowance of a program that may spend all that is left."""
        return Allowance(self.round_size, None if self.trials is None else self.trials - elsewhere, self.seconds)

    def affords_algorithms(self, *, tried: int, tasks: int, now_s: float, algorithms_s: float) -> bool:
        """Say whether enough is left to try other algorithms for parts of a program.

        In a run by time, some candidates have to be tried first, which shows the seconds that a candidate takes: there
        has to be time for one per task.

        Args:
            algorithms_s: Seconds to find the algorithms and to compile and time a program with them.
        """
        if self.trials is None:
            if not tried:
                return False
            candidate_s = (now_s - self.begun_s) / tried
            return self.seconds - now_s >= algorithms_s + tasks * candidate_s
        return self.trials - tried >= ALGORITHMS_ROUNDS * self.round_size * tasks

    def is_worth_composing(self, *, share: float, now_s: float, composing_s: float) -> bool:
        """Say whether other algorithms get more time than composing the program takes; always in a run by trials."""
        return self.trials is not None or _algorithms_share(share) * (self.seconds - now_s) >= composing_s

    def algorithms(self, *, share: float, tasks: int, own: int, elsewhere: int, now_s: float) -> Allowance:
        """Return the allowance for the search of the tasks in which other algorithms differ from a program."""
        spent, most = _algorithms_share(share), ALGORITHMS_CANDIDATES * tasks
        if self.trials is None:
            return Allowance(self.round_size, None, self._until_s(spent, now_s), own + most)
        left = int(spent * (self.trials - own - elsewhere))
        return Allowance(self.round_size, own + min(max(left, self.round_size), most))

    def calling_thread(self, *, tasks: int, elsewhere: int, now_s: float) -> Allowance:
        """Return the allowance for the search of a short program in the calling thread: a round per task."""
        most = self.round_size * tasks
        if self.trials is None:
            return Allowance(self.round_size, None, self._until_s(CALLING_THREAD_SHARE, now_s), most)
        return Allowance(self.round_size, min(most, self.trials - elsewhere))

    def _until_s(self, share: float, now_s: float) -> float:
        """Return the seconds on the run's clock at which a share of what is left at ``now_s`` is spent."""
        return now_s + share * max(0.0, self.seconds - now_s)

    def before_review(self, *, elsewhere: int, now_s: float) -> Allowance:
        """Return the allowance of the last program until its end is set anew; all that is left by trials."""
        rest = self.rest(elsewhere=elsewhere)
        return rest if self.trials is not None else replace(rest, until_s=self._until_s(REVIEW_SHARE, now_s))

    def review(self, end: End, *, now_s: float, candidate_s: float) -> tuple[float, int]:
        """Return the seconds on the run's clock at which the search ends, and how many candidates it tries until then.

        Args:
            end: What the end of the run takes, as far as known now.
            candidate_s: Seconds that a candidate takes; 0 as long as none was tried.
        """
        until_s = search_end_s(self.whole_s, end)
        if not candidate_s:
            return until_s, FIRST_ROUND if now_s < until_s else 0
        return until_s, max(0, int((until_s - now_s) / candidate_s))

    def finalists_s(self, spent_s: float, emission_s: float) -> float:
        """Return the seconds that finalists may take before an emission of so many; infinite for a search by trials."""
        return min(self.most_finalists_s, max(0.0, self.whole_s - emission_s - spent_s))

    def has_trials(self, tried: int) -> bool:
        """Say whether trials are left after ``tried`` candidates; False for a run by time."""
        return self.trials is not None and tried < self.trials

    def left_s(self, *, tried: int, here_s: float, now_s: float) -> float | None:
        """Return the estimated seconds to the end of the search, at least 0; None when unknown."""
        if self.trials is None:
            return max(0.0, self.seconds - now_s)
        return here_s / tried * max(0, self.trials - tried) if tried else None


def picks_per_task(options: TuneOptions) -> int:
    """Return how many candidates a task has without a search; more where estimating them is all that they cost."""
    return PICKS * (DRAWN if options.check_only else 1)


def trials_of(options: TuneOptions, tasks: int) -> int:
    """Return how many candidates a run that is not by time tries, given the number of its tasks."""
    if options.is_one_shot:
        return picks_per_task(options) * max(1, tasks)
    return DEFAULT_TRIALS_PER_TASK * max(1, tasks) if options.trials is None else options.trials


def _algorithms_share(share: float) -> float:
    """Return the share of what is left, 0 to 1, that goes to algorithms for a share of the program's time."""
    return min(ALGORITHMS_SHARE, ALGORITHMS_WEIGHT * share)


def _rung_share(explored: int) -> float:
    """Return each rung's share of the budget, 0 to 1, when ``explored`` programs are explored."""
    return EXPLORATION / max(2, math.ceil(math.log2(explored)))


def search_end_s(whole_s: float, end: End) -> float:
    """Return when, on the run's clock, a run of ``whole_s`` ends its search, given what its end takes."""
    end_s = end.emission_s + end.reports_s + min(end.choices_s, CHOICE_SHARE * whole_s)
    return whole_s - max(min(SET_ASIDE * whole_s, end_s), min(MOST_SET_ASIDE * whole_s, end.least_s))


def too_short(minutes: float | None, ledger: Ledger) -> str:
    """Return what to tell a user whose minutes are hardly enough to emit the plain program; empty where they are."""
    least = LEAST_RUN * ledger.plain_s / 60
    if minutes is None or minutes >= least:
        return ""
    return (
        f"{duration(60 * minutes)} is short: to compile this program as it is and to prove it takes about "
        f"{duration(ledger.plain_s)}; {math.ceil(10 * least) / 10:g} minutes or more leave time to tune it"
    )


def compiling_s(options: TuneOptions) -> float:
    """Return how many seconds after its start a process should have its variants; infinite for a run by trials."""
    return math.inf if options.minutes is None else COMPILING * 60 * options.minutes


def searching_s(options: TuneOptions) -> float:
    """Return how many seconds after its start a program of short calls is searched; infinite for a run by trials.

    Where calls take seconds, the search may end earlier: a variant that is compiled until then may be left without one.
    """
    return math.inf if options.minutes is None else (1 - SET_ASIDE) * 60 * options.minutes
