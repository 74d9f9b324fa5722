"""The outer loop: the search over program variants, in turns, until the budget is spent.

How fast a variant can become shows only when its dispatches are tuned: a rewritten program may be slower than the
default one until there are scripts for its dispatches, and more dispatches need more candidates.

Source: Jamieson & Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization" (2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeAlias, TypeVar

from mlir_sched.database.work_cost import WorkKind
from mlir_sched.evaluation.work import Work
from mlir_sched.program.building import fastest
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.tunability import tunable_variants, with_tunable_time
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tuning.algorithm_choice import AlgorithmChoice
from mlir_sched.tuning.budget import MOST_REVIEWS, Allowance, RungTurn
from mlir_sched.tuning.exchange import FoundTrace, found_traces
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.progress import SearchEvents
from mlir_sched.tuning.tuning_run import TuningRun

T = TypeVar("T")
Turns: TypeAlias = Generator[tuple[ProgramSearch, Allowance], None, T]
"""Programs in the order in which they are searched, each with what it may spend."""
OUT_OF_REACH = 1.5
"""A program that is expected to take more than this many times as long as the best one is dropped at any rank."""
NOTHING_LEFT = "nothing is left to try on the dispatches of the program"
TOO_LITTLE = "the next minute was expected to save {:.3g}% of the program's time, less than {:.3g}%"
"""Why a search ends before its trials or minutes are spent."""
SHORT_WITH_SCRIPTS_S = 100e-6
"""A program that is expected to take at most this many seconds with its scripts is searched in the calling thread, too:
to wake IREE's worker threads then takes a notable part of a call."""


@dataclass(frozen=True)
class SearchResult:
    """What a search over variants found.

    Attributes:
        best: The search of the program to emit.
        others: The searches of the other programs.
        interrupted: Whether the user stopped it.
        stopped: Why the machine's failures stopped it; empty when they did not.
        ended_early: Why it ended with a part of its budget left, as there was nothing more to gain; empty when it did
            not.
        left_out: Why other algorithms for parts of the program are not used, by name.
        algorithms: How many times as fast as what it replaces each other algorithm is that was measured, by name.
    """

    best: ProgramSearch
    others: tuple[ProgramSearch, ...]
    interrupted: bool
    left_out: Mapping[str, str]
    algorithms: Mapping[str, float]
    stopped: str = ""
    ended_early: str = ""

    @property
    def tried(self) -> int:
        """Candidates tried, those known from the store included."""
        return sum(program.tried for program in (self.best, *self.others))

    @property
    def measured(self) -> int:
        """Candidates evaluated by this process, not found in the store."""
        return sum(program.measured for program in (self.best, *self.others))


@dataclass
class VariantSearch:
    """The search for the variant that becomes the fastest program, and for its scripts; :meth:`of` makes it.

    Attributes:
        programs: The variants that are tuned, the fastest untuned one first.
        time_programs: Times several programs with their best scripts so far and returns their times by name, relative
            to one of the programs; programs that fail are missing.
        left: Programs that are still compared; the best of them is the result if the search ends now.
        algorithms: Chooses algorithms for parts of a program; None for a search without such a choice.
        built: All variants, those that are not tuned included.
        ended_early: Why the search ended with a part of its budget left; empty until it has ended, or where it did not.
    """

    made_by: ClassVar[type[ProgramSearch]] = ProgramSearch
    """What searches a program."""

    run: TuningRun
    programs: Sequence[ProgramSearch]
    time_programs: Callable[[Sequence[ProgramSearch]], Mapping[str, float]]
    left: Sequence[ProgramSearch]
    algorithms: AlgorithmChoice | None = None
    built: Sequence[BuiltVariant] = ()
    ended_early: str = ""

    @classmethod
    def of(
        cls,
        run: TuningRun,
        built: Sequence[BuiltVariant],
        events: SearchEvents,
        time_programs: Callable[[Sequence[ProgramSearch]], Mapping[str, float]],
        algorithms: AlgorithmChoice | None = None,
        dominant: Collection[str] = (),
        prepare: Callable[[BuiltVariant], BuiltVariant] = lambda built: built,
        profile: Callable[[BuiltVariant], BuiltVariant] = lambda built: built,
    ) -> Self:
        """Return the search over the variants of a model; where none can have scripts, the fastest one has no work.

        Args:
            run, time_programs, algorithms: As the attributes.
            built: All variants, the default first.
            dominant: Names of the variants that dominate all others.
            prepare: Called with every variant that is searched, for what its tasks need beside their code.
            profile: Returns a variant with its profile, which a run by time needs.
        """
        by_name, space, target = {b.variant.name: b for b in built}, run.space, run.target
        chosen = cls.searched(built, space, target, dominant)
        names = run.decide("tuned", lambda: [b.variant.name for b in chosen])
        if run.budget.by_time:  # by time, the dispatches that matter most come first
            by_name |= {name: profile(by_name[name]) for name in names}
            of_use = with_tunable_time([by_name[name] for name in names], space, target)
            names = run.decide("promising", lambda: [b.variant.name for b in of_use])
        programs = []
        for variant in map(by_name.__getitem__, names):
            with run.ledger.counting(WorkKind.CAPTURE, variant.variant.name):
                programs.append(cls.made_by(run, prepare(variant), events))
        return cls(run, programs, time_programs, programs, algorithms, built)

    @classmethod
    def searched(
        cls, built: Sequence[BuiltVariant], space: Space, target: Target, dominant: Collection[str] = ()
    ) -> Sequence[BuiltVariant]:
        """Return the variants that may be searched, the fastest untuned one first; arguments as of :meth:`of`."""
        return tunable_variants(built, space, target, dominant) or [fastest(built)]

    def work(self) -> Iterator[tuple[ProgramSearch, Work]]:
        """Search the programs in turns, and yield each with work that is to be run before the search goes on."""
        if not any(program.tasks for program in self.programs):
            return
        for number, (program, allowance) in enumerate(self._turns()):
            ended = self.run.decided(f"search-{number}")
            for work in program.work(replace(allowance, ended=ended), self._found_elsewhere(program)):
                yield program, work
            self._keep_end(number, program, allowance)
        self.ended_early = self.run.decide("ended-early", self._why_early)

    def result(self, *, interrupted: bool, stopped: str = "") -> SearchResult:
        """Return what was found so far."""
        best = min(self.left, key=ProgramSearch.expected_s)
        others = tuple(program for program in self.programs if program is not best)
        left_out = self.algorithms.left_out if self.algorithms else {}
        ratios = self.algorithms.ratios if self.algorithms else {}
        kept = best.continued_on(best.built) if best.extra else best
        return SearchResult(kept, others, interrupted, left_out, ratios, stopped, self.ended_early)

    def _why_early(self) -> str:
        """Return why the search ends with a part of its budget left; empty where it does not."""
        best = min(self.left, key=ProgramSearch.expected_s)
        too_little, least = best.too_little, self.run.options.stop_below
        if too_little is not None and least is not None:
            return TOO_LITTLE.format(100 * too_little, 100 * least)
        left = self.run.budget.by_time or self.run.budget.has_trials(best.tried + self._elsewhere(best))
        return NOTHING_LEFT if left and best.is_exhausted else ""

    def _keep_end(self, number: int, program: ProgramSearch, allowance: Allowance) -> None:
        """Keep where a turn by time ended, so that a resumed run ends it there."""
        if allowance.by_time:
            self.run.decide(f"search-{number}", lambda: program.tried)

    def _found_elsewhere(self, program: ProgramSearch) -> list[FoundTrace]:
        """Return the best traces of the other programs."""
        return [found for other in self.programs if other is not program for found in found_traces(other.searches)]

    def _turns(self) -> Turns[None]:
        """Yield the programs that are searched, each with what it may spend, until the budget is spent."""
        budget = self.run.budget
        count = budget.explored(len(self.programs))
        dropped = yield from self._halving(self.programs[:count])
        (best,) = self.left
        yield from self._with_calling_thread(best)
        (best,) = self.left
        yield from self._with_algorithms(best)
        (best,) = self.left
        elsewhere, since_s, before = self._elsewhere(best), self.run.clock.spent_s(), best.measured
        yield best, budget.before_review(elsewhere=elsewhere, now_s=since_s)
        for number in range(MOST_REVIEWS if budget.by_time else 0):
            until_s, candidates = self.run.decide(f"further-{number}", lambda: self._review(best, since_s, before))
            if not candidates or best.too_little is not None:
                break
            yield best, replace(budget.rest(elsewhere=elsewhere), until_s=until_s, most=best.tried + candidates)
        for program in (*self.programs[count:], *dropped):  # when nothing is left to try on the best
            if best.too_little is not None or not budget.has_trials(best.tried + self._elsewhere(best)):
                break
            self.left = [best, program]
            yield program, budget.rest(elsewhere=self._elsewhere(program))
            self.left = self._fastest(f"chosen-{program.name}", 1)
            (best,) = self.left

    def _review(self, program: ProgramSearch, since_s: float, before: int) -> tuple[float, int]:
        """Return until when a program is searched, and with how many candidates: see :meth:`Budget.review`.

        The seconds that a candidate takes are those of the last search, of the chosen program alone; where this search
        has measured no candidate, those of all that came after the variants were timed.

        Args:
            since_s: Seconds on the run's clock when its last search began.
            before: Candidates of the program that were measured before.
        """
        tried, now_s = program.tried + self._elsewhere(program), self.run.clock.spent_s()
        spent_s, number = now_s - self.run.budget.begun_s, tried
        if program.measured > before:
            spent_s, number = now_s - since_s, program.measured - before
        candidate_s = spent_s / number if number else 0.0
        tasks = sum(bool(search.history.records) for search in program.searches)
        built, expected_s = self.built or [program.built], program.expected_s()
        end = self.run.ledger.end(built, program.built, expected_s, tasks=tasks, candidate_s=candidate_s)
        return self.run.budget.review(end, now_s=now_s, candidate_s=candidate_s)

    def _with_calling_thread(self, program: ProgramSearch) -> Turns[None]:
        """Yield a program once more, in the calling thread, where scripts made the program short; leave the faster one.

        Without scripts a longer program may gain more from several threads than it takes to wake them.
        """
        there = self._in_calling_thread(program)
        if there is None:
            return
        budget = self.run.budget
        if not program.tried:
            yield program, self._first_allowance(program)
        if not self.run.decide("short", lambda: program.expected_s() <= SHORT_WITH_SCRIPTS_S):
            return
        self.programs, self.left = [*self.programs, there], [program, there]
        tasks, elsewhere, now_s = len(there.tasks), self._elsewhere(there), self.run.clock.spent_s()
        yield there, budget.calling_thread(tasks=tasks, elsewhere=elsewhere, now_s=now_s)
        self.left = self._fastest("device", 1)

    def _first_allowance(self, program: ProgramSearch) -> Allowance:
        """Return what a program that is searched alone may spend at first."""
        return self.run.budget.allowance(RungTurn(1, 0, 1, 0), own=0, elsewhere=self._elsewhere(program))

    def _in_calling_thread(self, program: ProgramSearch) -> ProgramSearch | None:
        """Return the search of a program in the calling thread; None where this is searched, or was not timed."""
        own = program.built.variant.plan
        if own.local_sync:
            return None
        searched = [other.name for other in self.programs]
        for built in self.built:
            same = built.variant.plan == own.in_calling_thread()
            if same and built.timing is not None and built.variant.name not in searched:
                return ProgramSearch(self.run, built, program.events)
        return None

    def _with_algorithms(self, program: ProgramSearch) -> Turns[None]:
        """Yield a program together with the tasks of its other algorithms; leave the program with those that pay.

        Only tasks in which an algorithm differs from the program are searched until then. In a run by time, a program
        that was not searched yet comes first as it is, which shows whether there is time for other algorithms.
        """
        if self.algorithms is None:
            return
        if self.run.budget.by_time and not program.tried:
            yield program, self._first_allowance(program)
        elsewhere = self._elsewhere(program)
        found = self.algorithms.alternatives(program, elsewhere=elsewhere)
        if not found.algorithms:
            return
        program.search_also(found.made, found.keys)
        tasks, now_s = len(found.keys.intersection(task.key for task in program.tasks)), self.run.clock.spent_s()
        allowance = self.run.budget.algorithms(
            share=found.share, tasks=tasks, own=program.tried, elsewhere=elsewhere, now_s=now_s
        )
        yield program, allowance
        composed = self.algorithms.composed(program, found.algorithms)
        self._replace(program, composed or program.continued_on(program.built))

    def _replace(self, program: ProgramSearch, successor: ProgramSearch) -> None:
        """Put a program's successor in its place."""
        self.programs = [successor if each is program else each for each in self.programs]
        self.left = [successor if each is program else each for each in self.left]

    def _halving(self, explored: Sequence[ProgramSearch]) -> Turns[list[ProgramSearch]]:
        """Yield all programs, each with a small allowance, then the better half once more, and so on until one is left.

        Returns:
            The programs that were dropped, those dropped last first.
        """
        budget = self.run.budget
        self.left, dropped, rung = explored, list[ProgramSearch](), 0
        while len(self.left) > 1:
            for place, program in enumerate(self.left):
                turn = RungTurn(len(explored), rung, len(self.left), place)
                yield program, budget.allowance(turn, own=program.tried, elsewhere=self._elsewhere(program))
            rung += 1
            most = budget.kept(turn, tried=sum(program.tried for program in explored))
            kept = self._fastest(f"rung-{rung}", most)
            dropped = [*(program for program in self.left if program not in kept), *dropped]
            self.left = kept
        return dropped

    def _fastest(self, name: str, most: int) -> list[ProgramSearch]:
        """Return at most ``most`` of the programs that are left, the fastest ones; decided once per run, under a name.

        Programs whose expected times are close are ranked by their measured times, while there is time to measure them.
        Programs without a single candidate were measured before.
        """

        def fastest() -> list[str]:
            ranked = sorted(self.left, key=ProgramSearch.expected_s)
            near_s = OUT_OF_REACH * ranked[0].expected_s()
            near = [program for program in ranked if program.expected_s() <= near_s]
            if len(near) > most and any(program.tried for program in near) and not self._is_late():
                times = self.time_programs(near)
                near.sort(key=lambda program: times.get(program.name, math.inf))  # stable: as expected without times
            return [program.name for program in near[:most]]

        by_name = {program.name: program for program in self.left}
        return [by_name[name] for name in self.run.decide(name, fastest)]

    def _is_late(self) -> bool:
        """Say whether the time for the search is over."""
        return self.run.budget.by_time and self.run.clock.spent_s() >= self.run.budget.seconds

    def _elsewhere(self, program: ProgramSearch) -> int:
        """Return the candidates tried so far on the other programs."""
        return sum(other.tried for other in self.programs if other is not program)
