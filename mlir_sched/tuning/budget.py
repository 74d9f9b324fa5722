"""The budget of a run, in candidates or in seconds, and the parts of it that the searches of its programs may spend.

All functions are pure: the searches say how far they are, and are told how far they may go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mlir_sched.program.closing import FINALIST_S
from mlir_sched.tuning.options import DEFAULT_TRIALS_PER_TASK, TuneOptions

COMPILING = 1 / 3
"""Share of the given minutes in which variants are compiled and timed."""
EXPLORATION = 1 / 2
"""Share of the budget that is spent before one program is chosen. The rungs of successive halving divide it equally:
they are log2 of the explored programs, rounded up, and at least two."""
TAKEN_CANDIDATES, CHOICE_CANDIDATES, CHOICE_SHARE = 2.0, 1.25, 0.05
"""What is set aside for the finalists of a task once the seconds are known that a candidate takes in the search, which
compiles while it times. The first number of candidates is for compiling and reporting the script that the search found,
the second for choices among finalists, which take at most this share of the whole time: of 5 minutes, choices for all
dispatches of ResNet-50 would take a quarter of the search. Source: both together took 2.0 to 2.9 candidates per task in
7 runs of 5 minutes on a core of a Xeon (BERT-base, GPT-2, MobileNet-V2, ResNet-50), of which ResNet-50 has 39."""
ROUND_SHARE, CANDIDATE_CALLS = 0.1, 25
"""Most of the time for the search, in a run by time, that a round should take; a candidate takes as long as 25
calls of the untuned code."""
REVIEW = 0.7
"""Share of the time for the search of the last program after which its end is set anew, from what is known by then."""
MOST_FURTHER = 4
"""Most times that the end of the search is set anew."""
SET_ASIDE = 1 / 3
"""Most of the given minutes that is set aside."""
ALGORITHMS_SHARE, ALGORITHMS_WEIGHT, ALGORITHMS_CANDIDATES = 1 / 2, 2.0, 16
"""What is spent, when one program is chosen, on the tasks in which its other algorithms differ from it: at most the
first share of what is left; at most a share in proportion to the share of the program's time that the algorithms are
for, twice that, as the tasks of both sides are searched; and at most so many candidates per task. Then the algorithms
are chosen. Fewer candidates make the choice chance: with 3, Winograd's largest product took 2.8 ms on ResNet-50, where
1.3 is possible."""
COMPOSING = 1 / 2
"""Time to compile and time a program with other algorithms, relative to the time before the search (24 and 57 s: ViT on
a core of a Xeon). Algorithms that are for so little of the program's time that their tasks are to be searched for less
than that are not tried: of 5 minutes on ViT, attention in one dispatch took half of the search, and the products, which
are most of the time, stayed at half of their speed."""
CALLING_THREAD_SHARE = 1 / 8
"""Most of what is left, in a run by time, that the search of a short program in the calling thread gets at first."""
ALGORITHMS_COST, ALGORITHMS_LEAST = 1.0, 1
"""Time that other algorithms take, and have to find left in a run by time: relative to the time before the search, to
extract their tasks and to compile one more program; and candidates per task of the program, half of which differ by the
algorithms. ResNet-50 takes 66 ms after 5 minutes on one core of a Zen 4 with them, and 74 without. Tried before any
other candidate, they took half of the search and were not chosen (85 ms)."""
ALGORITHMS_ROUNDS = 2
"""Least number of rounds per task left, by trials, for which other algorithms are tried."""
FIRST_ROUND = 2
"""Size of a task's first round by time; its least size by trials, where the tasks share one round, so that a small
budget reaches many. Which candidates are tried does not depend on the budget: a run with a larger budget goes on where
a smaller one ended."""


@dataclass(frozen=True)
class Standing:
    """How far the search of a program is.

    Attributes:
        tried: Candidates tried on the program.
        now_s: Seconds on the run's clock.
        tasks: How many of its tasks are searched, or wait for time to be measured.
        reached: Whether the task of the next round had one before.
        begun: Whether an interrupted process had begun the next round.
        strayed: Whether a resumed process measures other candidates than the one before.
    """

    tried: int
    now_s: float
    tasks: int
    reached: bool
    begun: bool
    strayed: bool = False


@dataclass(frozen=True)
class Part:
    """The part of a budget that the search of one program may spend, given by its end.

    Attributes:
        round_size: Most candidates of a round.
        trials: Candidates tried on the program by then, those of earlier parts included; None for a part by time.
        until_s: Seconds on the run's clock at the end; used when ``trials`` is None.
        most: Most candidates tried on the program by the end of a part by time; None for any number.
        ended: Candidates tried on the program when an earlier process ended this part by time; a resumed run ends the
            part at the same number. None when no earlier process ended the part.
    """

    round_size: int
    trials: int | None
    until_s: float = 0.0
    most: int | None = None
    ended: int | None = None

    @property
    def by_time(self) -> bool:
        """Whether the part ends at a time, and not after a number of candidates."""
        return self.trials is None

    def next_round(self, search: Standing) -> int:
        """Return how many candidates the next round may try; 0 at the end.

        First rounds are small where there are several tasks: a dispatch without any script may be many times slower
        than with one, and no time may be left to get to the last task. In a part by time, a resumed run finishes a
        round that was begun, even after ``until_s``, and so it does with a part that an earlier process ended, unless
        it strayed: what that process measured takes no time.
        """
        if self.trials is None:
            in_time = search.now_s < self.until_s
            goes_on = search.begun or in_time
            if self.ended is not None:
                goes_on = search.tried < self.ended and (in_time or not search.strayed)
            whole = search.reached or search.tasks == 1
            size = self.round_size if whole else min(FIRST_ROUND, self.round_size)
            if self.most is not None:
                size = min(size, max(0, self.most - search.tried))
            return size if goes_on else 0
        share = self.round_size if search.reached else max(FIRST_ROUND, self.round_size // search.tasks)
        return min(self.round_size, share, max(0, self.trials - search.tried))

    def untuned_until_s(self, now_s: float) -> float:
        """Return the seconds on the run's clock after which no further untuned code is measured.

        A part by time leaves half of what remains at ``now_s`` for untuned code; a part by trials sets no limit.
        """
        return math.inf if self.trials is not None else (now_s + self.until_s) / 2


@dataclass(frozen=True)
class Turn:
    """The turn of one program in successive halving.

    Attributes:
        explored: How many programs are explored in all.
        rung: Number of the rung, from 0.
        programs: How many programs share the rung.
        place: Place of the program among these, from 0.
    """

    explored: int
    rung: int
    programs: int
    place: int


@dataclass(frozen=True)
class Budget:
    """What a whole run may spend.

    Attributes:
        round_size: Most candidates of a round.
        trials: Candidates of all programs; None for a run by time.
        seconds: Seconds on the run's clock at the end of the search; used when ``trials`` is None.
        begun_s: Seconds on the run's clock when the search began; the programs were compiled and timed before.
        whole_s: Seconds on the run's clock at the end of the whole run; infinite for a run by trials.
        finalist_s: Seconds per task that are set aside for the finalists, besides those for emission
            (:func:`~mlir_sched.program.closing.emission_s`), before any candidate shows the pace.
    """

    round_size: int
    trials: int | None
    seconds: float = 0.0
    begun_s: float = 0.0
    whole_s: float = math.inf
    finalist_s: float = FINALIST_S

    @property
    def by_time(self) -> bool:
        """Whether the budget is in seconds."""
        return self.trials is None

    @staticmethod
    def of(
        options: TuneOptions, *, tasks: int, begun_s: float, emission_s: float = 0.0, finalist_s: float = FINALIST_S
    ) -> Budget:
        """Return the budget that a user gave a run, or else the default budget.

        Args:
            options: What the user decided.
            tasks: The largest number of tasks that can be tuned in one variant.
            begun_s: Seconds on the run's clock when the search began.
            emission_s: Seconds that emission is expected to take.
            finalist_s: Seconds that the finalists of a task are expected to take.
        """
        if options.minutes is not None:
            whole_s = 60 * options.minutes
            until_s = search_end_s(whole_s, emission_s + finalist_s * tasks)
            return Budget(options.round_size, None, until_s, begun_s, whole_s, finalist_s)
        return Budget(options.round_size, options.trials or DEFAULT_TRIALS_PER_TASK * max(1, tasks), begun_s=begun_s)

    def most_of_round(self, untuned_s: float) -> int:
        """Return the most candidates of a round on a task whose untuned code takes ``untuned_s`` seconds per call."""
        if self.trials is not None:
            return self.round_size
        fitting = ROUND_SHARE * max(0.0, self.seconds - self.begun_s) / (CANDIDATE_CALLS * untuned_s)
        return min(self.round_size, max(FIRST_ROUND, int(fitting)))

    def explored(self, programs: int) -> int:
        """Return how many of the programs are explored, at least one: a small budget in trials leaves some out."""
        return (
            programs if self.trials is None else max(1, min(programs, int(self.trials * EXPLORATION / self.round_size)))
        )

    def part(self, turn: Turn, *, own: int, elsewhere: int) -> Part:
        """Return what a program may spend in its turn; for a budget in trials this is whole rounds, at least one.

        Args:
            turn: The turn.
            own: Candidates tried so far on the program.
            elsewhere: Candidates tried so far on the other programs.
        """
        share = _rung_share(turn.explored)
        if self.trials is None:
            spent = share * turn.rung + share * (turn.place + 1) / turn.programs
            return Part(self.round_size, None, self.begun_s + max(0.0, self.seconds - self.begun_s) * spent)
        rounds = max(1, int(self.trials * share / turn.programs / self.round_size))
        return Part(self.round_size, min(own + rounds * self.round_size, self.trials - elsewhere))

    def kept(self, last: Turn, *, tried: int) -> int:
        """Return how many programs are left after a rung: half, rounded up, or one when :data:`EXPLORATION` is spent.

        Args:
            last: The last turn of the rung.
            tried: Candidates tried so far on all explored programs; a program's round may be more than its share.
        """
        spent = _rung_share(last.explored) * (last.rung + 1) if self.trials is None else tried / self.trials
        return math.ceil(last.programs / 2) if spent < EXPLORATION else 1

    def rest(self, *, elsewhere: int) -> Part:
        """Return the part for a program that may spend all of the budget that is left."""
        return Part(self.round_size, None if self.trials is None else self.trials - elsewhere, self.seconds)

    def affords_algorithms(self, *, tried: int, tasks: int, now_s: float) -> bool:
        """Say whether enough is left to try other algorithms for parts of a program.

        In a run by time, what a candidate takes is known only after some were tried.

        Args:
            tried: Candidates tried so far on all programs.
            tasks: Tasks of the program.
            now_s: Seconds on the run's clock.
        """
        if self.trials is None:
            if not tried:
                return False
            candidate_s = (now_s - self.begun_s) / tried
            needed_s = ALGORITHMS_COST * self.begun_s + ALGORITHMS_LEAST * tasks * candidate_s
            return self.seconds - now_s >= needed_s
        return self.trials - tried >= ALGORITHMS_ROUNDS * self.round_size * tasks

    def is_worth_composing(self, *, share: float, now_s: float) -> bool:
        """Say whether other algorithms may gain what composing the program takes; always in a run by trials.

        Args:
            share: Share of the program's time that they are for, 0 to 1.
            now_s: Seconds on the run's clock.
        """
        if self.trials is not None:
            return True
        return _algorithms_share(share) * (self.seconds - now_s) >= COMPOSING * self.begun_s

    def algorithms(self, *, share: float, tasks: int, own: int, elsewhere: int, now_s: float) -> Part:
        """Return the part in which the tasks are searched in which other algorithms differ from a program's own.

        Args:
            share: Share of the program's time that the algorithms are for, 0 to 1.
            tasks: How many these tasks are.
            own: Candidates tried so far on the program.
            elsewhere: Candidates tried so far on the other programs.
            now_s: Seconds on the run's clock.
        """
        spent, most = _algorithms_share(share), ALGORITHMS_CANDIDATES * tasks
        if self.trials is None:
            return Part(self.round_size, None, self._until_s(spent, now_s), own + most)
        left = int(spent * (self.trials - own - elsewhere))
        return Part(self.round_size, own + min(max(left, self.round_size), most))

    def calling_thread(self, *, tasks: int, elsewhere: int, now_s: float) -> Part:
        """Return the part in which a program that became short is searched in the thread that calls: a round per task.

        Args:
            tasks: Tasks of the program.
            elsewhere: Candidates tried so far on the other programs.
            now_s: Seconds on the run's clock.
        """
        most = self.round_size * tasks
        if self.trials is None:
            return Part(self.round_size, None, self._until_s(CALLING_THREAD_SHARE, now_s), most)
        return Part(self.round_size, min(most, self.trials - elsewhere))

    def _until_s(self, share: float, now_s: float) -> float:
        """Return the seconds on the run's clock at which a share of what is left at ``now_s`` is spent."""
        return now_s + share * max(0.0, self.seconds - now_s)

    def before_review(self, *, elsewhere: int, now_s: float) -> Part:
        """Return the part for the last program before the end of its search is set anew; all of it by trials.

        Args:
            elsewhere: Candidates tried so far on the other programs.
            now_s: Seconds on the run's clock.
        """
        rest = self.rest(elsewhere=elsewhere)
        return rest if self.trials is not None else replace(rest, until_s=self._until_s(REVIEW, now_s))

    def further(self, *, tasks: int, emission_s: float, now_s: float, candidate_s: float) -> tuple[float, int]:
        """Return the seconds on the run's clock until which the search goes on, and how many candidates it tries.

        Args:
            tasks: How many tasks have candidates: the others need no finalists.
            emission_s: Seconds that emission is expected to take.
            now_s: Seconds on the run's clock.
            candidate_s: Seconds that a candidate takes; 0 as long as none was tried.
        """
        if not candidate_s:
            until_s = search_end_s(self.whole_s, emission_s + self.finalist_s * tasks)
            return until_s, FIRST_ROUND if now_s < until_s else 0
        choices_s = min(CHOICE_CANDIDATES * candidate_s * tasks, CHOICE_SHARE * self.whole_s)
        until_s = search_end_s(self.whole_s, emission_s + TAKEN_CANDIDATES * candidate_s * tasks + choices_s)
        return until_s, max(0, int((until_s - now_s) / candidate_s))

    def finalists_s(self, spent_s: float, emission_s: float) -> float:
        """Return the seconds that the finalists may take; infinite for a run by trials.

        Args:
            spent_s: Seconds on the run's clock.
            emission_s: Seconds that emission is expected to take afterwards.
        """
        return max(0.0, self.whole_s - emission_s - spent_s)

    def has_trials(self, tried: int) -> bool:
        """Say whether trials are left after ``tried`` candidates; False for a run by time."""
        return self.trials is not None and tried < self.trials

    def left_s(self, *, tried: int, here_s: float, now_s: float) -> float | None:
        """Return the estimated seconds to the end of the search, at least 0; None when unknown.

        Args:
            tried: Candidates tried on all programs.
            here_s: Seconds that this process spent.
            now_s: Seconds on the run's clock.
        """
        if self.trials is None:
            return max(0.0, self.seconds - now_s)
        return here_s / tried * max(0, self.trials - tried) if tried else None


def _algorithms_share(share: float) -> float:
    """Return the share of what is left, 0 to 1, that goes to algorithms for a share of the program's time."""
    return min(ALGORITHMS_SHARE, ALGORITHMS_WEIGHT * share)


def _rung_share(explored: int) -> float:
    """Return each rung's share of the budget, 0 to 1, when ``explored`` programs are explored."""
    return EXPLORATION / max(2, math.ceil(math.log2(explored)))


def search_end_s(whole_s: float, end_s: float) -> float:
    """Return the seconds on the run's clock at which a run by time ends its search, so that it is over in time.

    Args:
        whole_s: Seconds of the whole run.
        end_s: Seconds that finalists and emission are expected to take.
    """
    return whole_s - min(SET_ASIDE * whole_s, end_s)


def compiling_s(options: TuneOptions) -> float:
    """Return how many seconds after its start a process should have its variants; infinite for a run by trials."""
    return math.inf if options.minutes is None else COMPILING * 60 * options.minutes


def searching_s(options: TuneOptions) -> float:
    """Return how many seconds after its start a run ends its search at the earliest; infinite for a run by trials."""
    return math.inf if options.minutes is None else (1 - SET_ASIDE) * 60 * options.minutes
