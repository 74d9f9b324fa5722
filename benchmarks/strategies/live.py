"""Arms in real searches: what each has found after some trials, in pairs on the same tasks with the same seeds.

The tasks are other shapes than those of the corpus, and the corpus is that of this machine. Ratios to the untuned code
alone are compared, as the times of one program differ from run to run. A search that has no valid candidate yet counts
as the slowest of those that are compared in its match. The untuned code does not count, as it says nothing of a search;
a note says what is left of a gain where it does, as for a user, who keeps it where nothing is faster.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, geometric_mean

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.strategies.arms import ARMS, SCRATCH
from benchmarks.strategies.matches import TIMED, Course, Match
from benchmarks.strategies.verdict import LAST, Compared, Gate, Pair, compared, judged

MARKS = (1, 2, 4, 8, 16, 24)
"""Trials after which the best so far is looked at."""
NEAR = 1.05
"""How near to the best of all arms counts as found."""
Networks = Mapping[str, Sequence[tuple[float, float]]]
"""By arm, the ends of the interval of each network: time with the arm over time without it."""


@dataclass(frozen=True)
class Played:
    """A match, with what follows from it for one arm."""

    match: Match
    arm: str

    @property
    def course(self) -> Course:
        """What the arm found."""
        return self.match.courses[self.arm]

    def behind(self, trials: int) -> float:
        """Return the best time after some trials over the best time of all arms in the end, by the searches' times."""
        return self._best_of_all / self._best_after(trials)

    def trials_to_near(self) -> int:
        """Return the trials until the best is near that of all arms; twice the trials of a search for never."""
        trials = len(self.course.speedups)
        near = (n for n in range(1, trials + 1) if self.behind(n) <= NEAR)
        return next(near, 2 * max(len(each.speedups) for each in self.match.courses.values()))

    def against(self, other: str, at: int, least: float = 0.0) -> Pair:
        """Return this arm against another one after the trials of that place, timed side by side.

        Args:
            least: Speed-up of what counts beside the candidates; 1 for the untuned code, 0 for nothing.
        """
        found = [each for course in self.match.courses.values() for each in course.timed if each is not None]
        slowest = min(found, default=1.0)
        timed = (self.match.courses[arm].timed[at] or slowest for arm in (self.arm, other))
        own, others = (max(least, each) for each in timed)
        return Pair(self.match.task, self.match.family, self.match.seed, others / own)

    def _best_after(self, trials: int) -> float:
        return max(
            (each for each in self.course.speedups[:trials] if each is not None), default=min(self._all, default=1.0)
        )

    @property
    def _best_of_all(self) -> float:
        return max(self._all, default=1.0)

    @property
    def _all(self) -> list[float]:
        courses = self.match.courses.values()
        return [each for course in courses for each in course.speedups if each is not None]


def comparisons(matches: Sequence[Match], arm: str, other: str, least: float = 0.0) -> dict[int, Compared]:
    """Return an arm against another one by the number of trials; ``least`` as of :meth:`Played.against`."""
    timed = range(len(matches[0].courses[arm].timed))
    return {TIMED[at]: compared([Played(match, arm).against(other, at, least) for match in matches]) for at in timed}


def trials_compared(matches: Sequence[Match], arm: str, other: str) -> Compared:
    """Return the trials until near the best with an arm over those with another one."""
    needed = [tuple(Played(match, each).trials_to_near() for each in (arm, other)) for match in matches]
    pairs = zip(matches, needed, strict=True)
    return compared([Pair(match.task, match.family, match.seed, own / others) for match, (own, others) in pairs])


def results_table(matches: Sequence[Match], networks: Networks, corpus: str, publishing: Publishing) -> ResultTable:
    """Return a table with a row per arm, the first of which the others are compared with.

    Args:
        networks: What is known of whole programs.
        corpus: What the arms know, in words.
    """
    first, *others = arms = list(matches[0].courses)
    trials = max(len(course.speedups) for match in matches for course in match.courses.values())
    tasks, seeds = {match.task for match in matches}, sorted({match.seed for match in matches})
    against = {arm: comparisons(matches, arm, first) for arm in others}
    judgeable = first == SCRATCH and trials >= LAST
    gates = {arm: ARMS[arm].gate for arm in others if judgeable and ARMS[arm].gate.most.keys() <= against[arm].keys()}
    judgements = {
        arm: judged(against[arm], gate, networks.get(arm, ()), trials_compared(matches, arm, first))
        for arm, gate in gates.items()
    }
    columns: Columns[str] = {
        **{
            ResultColumn(f"after {mark}", Unit.RATIO): partial(_mean, matches, partial(_behind, mark))
            for mark in MARKS
            if mark <= trials
        },
        ResultColumn("trials to 5 %", Unit.NUMBER): lambda arm: fmean(
            Played(match, arm).trials_to_near() for match in matches
        ),
        **{
            ResultColumn(f"over {first} at {mark}", Unit.RATIO): partial(_over, against, mark)
            for mark in TIMED
            if mark <= trials
        },
        ResultColumn("worst family"): partial(_worst_family, against),
        ResultColumn("overhead", Unit.SECONDS): lambda arm: fmean(match.courses[arm].overhead_s for match in matches),
        ResultColumn("verdict"): lambda arm: judgements[arm].verdict if arm in judgements else None,
    }
    return publishing.table(
        name=f"strategies-live-{'-'.join(arms)}",
        question="search",
        features=True,
        title=f"Searches of {len(tasks)} tasks that begin with what is known: {', '.join(arms)}",
        threads=1,
        seeds=seeds,
        interleaving="Arms search every task in changing order, with one store; what they found is timed in turns",
        spread="95 % by resampling the tasks",
        rows_are="arm",
        columns=columns,
        rows=[(arm, arm) for arm in arms],
        notes=(
            f"After N: best time after N trials over the best of all arms, geometric mean over {len(matches)} "
            "searches, by the times of the searches. Trials to 5 %: until the best is within 5 % of that of all arms; "
            f"{2 * trials} for never. Over {first} at N: time over {first}'s after as many trials, timed in turns in "
            "a new process; worst family: the largest of the families' means, at the last of these. Overhead: seconds "
            f"of a search beside compiling and timing. What the arms know: {corpus}.",
            f"With the best of all arms as its first candidate, an arm would be at {_least(matches, first)} "
            f"over {first}.",
            *(f"{arm}: {ARMS[arm].what}{_asked_of(ARMS[arm].gate)}" for arm in arms),
            *(f"{arm} where the untuned code counts, too: {_with_untuned(matches, arm, first)}" for arm in others),
            *(f"{arm} is no default: {'; '.join(found.against)}" for arm, found in judgements.items() if found.against),
        ),
    )


def lines_of(match: Match) -> str:
    """Return what a match has shown, on one line."""
    found = (f"{arm} {Played(match, arm).behind(len(course.speedups)):.2f}" for arm, course in match.courses.items())
    return f"{match.task}, seed {match.seed}: {', '.join(found)} of the best"


def _asked_of(gate: Gate) -> str:
    asked = [f"{most:g} at {trials}" for trials, most in gate.most.items()]
    if gate.trials is not None:
        asked.append(f"{gate.trials:g} of its trials to 5 %")
    return f"; what is asked of it over {SCRATCH}: at most {', '.join(asked)}" if asked else ""


def _least(matches: Sequence[Match], arm: str) -> str:
    """Return what no arm can be below, by the times of the searches: the best of all arms over one arm."""
    trials = max(len(match.courses[arm].speedups) for match in matches)
    marks = (mark for mark in TIMED if mark <= trials)
    return ", ".join(f"{1 / _mean(matches, partial(_behind, mark), arm):.2f} at {mark}" for mark in marks)


def _with_untuned(matches: Sequence[Match], arm: str, other: str) -> str:
    found = comparisons(matches, arm, other, least=1.0)
    return ", ".join(f"{each.ratio:.2f} at {trials}" for trials, each in found.items())


def _behind(trials: int, played: Played) -> float:
    return played.behind(trials)


def _mean(matches: Sequence[Match], value: Callable[[Played], float], arm: str) -> float:
    return geometric_mean(value(Played(match, arm)) for match in matches)


def _over(against: Mapping[str, Mapping[int, Compared]], trials: int, arm: str) -> Figure | None:
    if arm not in against:
        return None
    found = against[arm][trials]
    return figure(found.ratio, found.low, found.high)


def _worst_family(against: Mapping[str, Mapping[int, Compared]], arm: str) -> str | None:
    if arm not in against:
        return None
    name, ratio = against[arm][max(against[arm])].worst_family
    return f"{ratio:.2f}, {name}"
